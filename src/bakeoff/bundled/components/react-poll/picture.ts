export default {
  question: 'What do you drink?',
  options: [
    { id: 'tea', label: 'Tea', votes: 3 },
    { id: 'coffee', label: 'Coffee', votes: 5 },
  ],
};
