export default {
  caption: 'Rivers',
  columns: [
    { key: 'name', title: 'Name', sortable: true },
    { key: 'length', title: 'Length', sortable: true },
  ],
  rows: [
    { id: 1, name: 'Danube', length: 2850 },
    { id: 2, name: 'Rhine', length: 1233 },
  ],
};
