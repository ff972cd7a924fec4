// Svelte: what its components and tests may import, and how its rehearsal is shown.
module.exports = {
  modules(vitest) {
    const library = require('@testing-library/svelte');
    let cleaning = false;
    const withCleanup = () => {
      if (!cleaning) {
        cleaning = true;
        vitest.beforeEach(async () => { await library.setup(); });
        vitest.afterEach(async () => { await library.act(); library.cleanup(); });
      }
      return library;
    };
    const provided = {
      ...require('bakeoff:svelte'), '@testing-library/svelte': withCleanup, '@testing-library/svelte/svelte5': withCleanup,
    };
    for (const name of ['svelte', 'svelte/internal/client', 'svelte/store', 'svelte/reactivity']) provided[name]();
    return provided;
  },

  async mountOnce() {
    const { mount, unmount } = require('svelte');
    await require('@testing-library/svelte').setup();
    await unmount(mount(require('./rehearsal.svelte').default, { target: document.createElement('div') }));
  },

  async render() {
    const { render, setup } = require('@testing-library/svelte');
    await setup();
    render(require('./rehearsal.svelte').default, { start: 1 });
  },

  async cleanup() {
    const { act, cleanup } = require('@testing-library/svelte');
    await act();
    cleanup();
  },
};
