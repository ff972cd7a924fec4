export default { total: 95, page: 4 };
