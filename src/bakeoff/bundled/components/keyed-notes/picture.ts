export default {
  notes: [
    { id: 'a', title: 'Milk' },
    { id: 'b', title: 'Bread' },
  ],
};
