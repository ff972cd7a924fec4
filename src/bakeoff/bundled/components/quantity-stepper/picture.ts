export default { label: 'Apples', initial: 2 };
