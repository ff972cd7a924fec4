export default { rows: 3, perRow: 5, price: 12.5, taken: ['A2', 'B4'] };
