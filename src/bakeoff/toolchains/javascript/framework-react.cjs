// React: what its components and tests may import, and how its rehearsal is shown.
const { keepingHooks } = require('./hooks.cjs');

function Rehearsal({ start = 0 }) {
  const { createElement, Fragment, useEffect, useMemo, useState } = require('react');
  const [count, setCount] = useState(start);
  const double = useMemo(() => count * 2, [count]);
  useEffect(() => () => {}, [double]);
  return createElement(
    Fragment, null,
    createElement('button', { onClick: () => setCount((now) => now + 1) }, count),
    createElement('input', { defaultValue: 'a' }),
    count > 0 ? createElement('p', { className: 'big' }, double) : null,
    createElement('ul', null, ['a', 'b'].map((item) => createElement('li', { key: item }, item))),
  );
}

const shown = () => require('react').createElement(Rehearsal, { start: 1 });

module.exports = {
  modules(vitest) {
    return {
      react: () => require('react'),
      'react/jsx-runtime': () => require('react/jsx-runtime'),
      'react/jsx-dev-runtime': () => require('react/jsx-dev-runtime'),
      'react-dom': () => require('react-dom'),
      'react-dom/client': () => require('react-dom/client'),
      '@testing-library/react': keepingHooks(vitest, () => require('@testing-library/react')),
    };
  },

  async mountOnce() {
    const { createRoot } = require('react-dom/client');
    const { flushSync } = require('react-dom');
    const root = createRoot(document.createElement('div'));
    flushSync(() => root.render(shown()));
    flushSync(() => root.unmount());
  },

  render() {
    require('@testing-library/react').render(shown());
  },

  cleanup() {
    require('@testing-library/react').cleanup();
  },
};
