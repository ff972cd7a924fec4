export default { search: async (query: string) => [`${query} one`, `${query} two`] };
