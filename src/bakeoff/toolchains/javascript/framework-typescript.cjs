// Plain TypeScript: nothing beside the page.
module.exports = {
  modules: () => ({}),

  async mountOnce() {},

  render() {
    const button = Object.assign(document.createElement('button'), { textContent: '1' });
    const double = Object.assign(document.createElement('p'), { textContent: '2' });
    button.onclick = () => {
      button.textContent = '2';
      double.textContent = '4';
    };
    document.body.append(button, double);
  },

  cleanup() {},
};
