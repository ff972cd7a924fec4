export default { seconds: 65 };
