export default { start: <p>The left view</p>, end: <p>The right view</p> };
