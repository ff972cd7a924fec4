export default { text: 'Hello' };
