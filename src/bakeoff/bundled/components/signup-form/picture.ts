export default { register: async () => ({ ok: true }) };
