// Vue: what its components and tests may import, and how its rehearsal is shown.
const { keepingHooks } = require('./hooks.cjs');

function rehearsal() {
  const { computed, h, ref, watchEffect } = require('vue');
  return {
    props: { start: { type: Number, default: 0 } },
    setup(props) {
      const count = ref(props.start);
      const double = computed(() => count.value * 2);
      watchEffect(() => double.value);
      return () => [
        h('button', { onClick: () => { count.value += 1; } }, count.value),
        h('input', { value: 'a' }),
        count.value > 0 ? h('p', { class: 'big' }, double.value) : null,
        h('ul', ['a', 'b'].map((item) => h('li', { key: item }, item))),
      ];
    },
  };
}

module.exports = {
  modules(vitest) {
    return {
      vue: () => require('vue'),
      '@vue/test-utils': () => require('@vue/test-utils'),
      '@testing-library/vue': keepingHooks(vitest, () => require('@testing-library/vue')),
    };
  },

  async mountOnce() {
    const app = require('vue').createApp(rehearsal(), { start: 1 });
    app.mount(document.createElement('div'));
    app.unmount();
  },

  render() {
    require('@testing-library/vue').render(rehearsal(), { props: { start: 1 } });
  },

  cleanup() {
    require('@testing-library/vue').cleanup();
  },
};
