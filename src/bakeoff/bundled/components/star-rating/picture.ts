export default { label: 'Your rating', value: 3 };
