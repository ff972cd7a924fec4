export default { id: 'ada', load: async () => ({ name: 'Ada', bio: 'Writes programs.' }) };
