// A testing library adds its hooks to the tests when it is loaded. A worker loads it long before there are tests, so the
// hooks are kept, and added when a test imports it.
const NAMES = ['beforeAll', 'afterAll', 'beforeEach', 'afterEach'];

exports.keepingHooks = (vitest, load) => {
  const kept = [];
  for (const name of NAMES) globalThis[name] = (hook) => kept.push([name, hook]);
  const library = load();
  for (const name of NAMES) delete globalThis[name];
  return () => {
    for (const [name, hook] of kept.splice(0)) vitest[name](hook);
    return library;
  };
};
