export default {
  items: [
    { id: 'a', name: 'Apple', group: 'Fruit' },
    { id: 'b', name: 'Pear', group: 'Fruit' },
    { id: 'c', name: 'Leek', group: 'Vegetables' },
  ],
};
