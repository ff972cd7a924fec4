export default { cents: 1234, was: 1999 };
