export default { initial: ['Milk', 'Bread', 'Apples'] };
