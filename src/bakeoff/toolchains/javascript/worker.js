// One candidate's process: libraries are loaded, then it waits for one job, does it, tells the result and ends.
const { messageOf, messagesOf, outcome, serve, settle } = require('./host.cjs');
const { Modules } = require('./modules.cjs');
const framework = require('bakeoff:framework'); // the one of this bundle

const nodeRequire = require;

const GLOBALS = [
  ...['suite', 'test', 'describe', 'it', 'chai', 'expect', 'assert', 'expectTypeOf', 'assertType', 'vitest', 'vi'],
  ...['beforeAll', 'afterAll', 'beforeEach', 'afterEach', 'onTestFinished', 'onTestFailed', 'aroundEach', 'aroundAll'],
];

let vitest; // what `import … from 'vitest'` gives
let provided; // what can be imported, by name
let runner;

// ------------------------------------------------------------------------------------------------ before the job

async function warmUp(rehearsing) {
  Object.assign(process.env, { NO_COLOR: '1', NODE_ENV: 'test', TEST: 'true', VITEST: 'true', VITEST_MODE: 'RUN' });
  Object.assign(process.env, { MODE: 'test', DEV: '1', PROD: '', SSR: '', BASE_URL: '/' });
  process.env.VITEST_POOL_ID = process.env.VITEST_WORKER_ID = '1';
  globalThis.__vitest_required__ = {
    util: require('node:util'), timers: require('node:timers'), timersPromises: require('node:timers/promises'),
  };
  const { builtinEnvironments } = require('vitest/runtime');
  await builtinEnvironments.jsdom.setup(globalThis, { jsdom: {} });
  provideState();
  vitest = require('vitest');
  delete globalThis.__vitest_required__;
  require('@vitest/utils/timers').setSafeTimers();
  require('@testing-library/jest-dom/vitest');
  provided = { ...testModules(), ...framework.modules(vitest) };
  runner = makeRunner();
  // What V8 keeps of the rehearsal is in the cache; here it is enough that the framework has prepared the page.
  await (rehearsing ? rehearse() : framework.mountOnce());
  for (const name of GLOBALS) globalThis[name] = vitest[name]; // not before: the testing library would add its hooks now
}

// `import.meta.env` is the environment, with three names that are true or false, as Vitest has it.
function metaEnv() {
  const flags = new Set(['DEV', 'PROD', 'SSR']);
  return new Proxy(process.env, {
    get: (env, name) => (flags.has(name) ? Boolean(env[name]) : env[name]),
    set: (env, name, value) => {
      env[name] = flags.has(name) ? (value ? '1' : '') : value;
      return true;
    },
  });
}

function provideState() {
  const ignored = async () => {};
  const config = {
    root: '/', name: '', mode: 'test', testTimeout: 5000, hookTimeout: 10000, teardownTimeout: 10000, retry: 0,
    maxConcurrency: 5, passWithNoTests: false, allowOnly: true, includeTaskLocation: false, tags: [],
    sequence: { shuffle: false, concurrent: false, seed: 1, hooks: 'stack', setupFiles: 'parallel' },
    experimental: { viteModuleRunner: true, importDurations: { limit: 0 } }, expect: {}, diffOptions: undefined,
    snapshotOptions: { updateSnapshot: 'none', expand: false }, fakeTimers: { loopLimit: 10000, shouldClearNativeTimers: true },
    setupFiles: [], chaiConfig: undefined, env: {}, defines: {}, clearMocks: false, mockReset: false, restoreMocks: false,
  };
  globalThis.__vitest_worker__ = {
    ctx: { pool: 'forks', files: [], config, projectName: '' }, config, providedContext: {},
    rpc: new Proxy({}, { get: () => ignored }), environment: { name: 'jsdom', viteEnvironment: 'client' },
    evaluatedModules: { getModuleById() {}, idToModuleMap: new Map() }, moduleExecutionInfo: new Map(),
    durations: { environment: 0, prepare: 0 }, metaEnv: metaEnv(), resolvingModules: new Set(), filepath: '/test.ts',
    onCancel() {}, onCleanup() {}, onFilterStackTrace: (stack) => stack,
  };
}

function testModules() {
  const event = require('@testing-library/user-event');
  const dom = require('@testing-library/dom');
  return {
    vitest: () => vitest,
    '@testing-library/dom': () => dom,
    '@testing-library/user-event': () => event,
    '@testing-library/jest-dom': () => ({}),
    '@testing-library/jest-dom/vitest': () => ({}),
    '@testing-library/jest-dom/matchers': () => require('@testing-library/jest-dom/matchers'),
  };
}

function makeRunner() {
  const { getTestName } = require('@vitest/runner/utils');
  class Runner extends vitest.TestRunner {
    trace = (_name, second, third) => (third ?? second)({ setAttribute() {}, setAttributes() {} });
    importFile(_path, source) {
      return source === 'collect' ? this.load() : undefined;
    }
    // Snapshots are left to a fresh Vitest; without them these three have little to do.
    onBeforeRunSuite(suite) {
      this.workerState.current = suite;
    }
    onAfterRunSuite(suite) {
      this.workerState.current = suite.suite || suite.file;
    }
    onAfterRunFiles() {}
    onBeforeTryTask(test) {
      vitest.expect.setState({
        assertionCalls: 0, isExpectingAssertions: false, isExpectingAssertionsError: null,
        expectedAssertionsNumber: null, expectedAssertionsNumberErrorGen: null, currentTestName: getTestName(test),
      });
    }
  }
  const made = new Runner(globalThis.__vitest_worker__.config);
  made.pool = 'forks';
  return made;
}

async function startTests(load) {
  runner.load = load;
  const [file] = await require('@vitest/runner').startTests([{ filepath: '/test.ts', testLocations: undefined }], runner);
  return file;
}

// A small suite of our own takes every usual way once, so that the job itself meets nothing for the first time.
async function rehearse() {
  const { screen } = require('@testing-library/dom');
  const { default: userEvent } = require('@testing-library/user-event');
  const { expect, vi } = vitest;
  await startTests(() => {
    vitest.test('passes', async () => {
      await framework.render();
      await userEvent.setup().click(screen.getByRole('button', { name: '1' }));
      await vi.waitFor(() => expect(screen.getByRole('button')).toHaveTextContent('2'));
      expect(screen.getByText('4')).toBeInTheDocument();
      expect({ a: [1] }).toEqual({ a: [1] });
      expect(vi.fn()).not.toHaveBeenCalled();
    });
    vitest.test('fails', () => expect({ a: ['one'] }).toEqual({ a: ['two'] }));
    vitest.test('finds nothing', () => screen.getByText('five'));
  });
  await framework.cleanup();
  document.body.innerHTML = '';
}

// ------------------------------------------------------------------------------------------------------- the job

function modulesOf(job, giveUp) {
  return new Modules(job.modules, { provided, nodeRequire, giveUp, given: { __meta_env: globalThis.__vitest_worker__.metaEnv } });
}

async function runSuite(job, giveUp) {
  const modules = modulesOf(job, giveUp);
  const errors = [];
  for (const [kind, title] of [['uncaughtException', 'Uncaught Exception'], ['unhandledRejection', 'Unhandled Rejection']]) {
    process.on(kind, (error) => {
      // As in Vitest: whoever listens for these takes care of them.
      if (process.listenerCount(kind) <= 1) errors.push(`${title}: ${messageOf(error)}`);
    });
  }
  const file = await startTests(() => modules.load(job.entry));
  await settle();
  const tests = [];
  const error = [...describeTests(file, [], tests), ...errors].filter(Boolean).join('\n');
  return { tests, error };
}

const STATES = { pass: 'passed', fail: 'failed', skip: 'skipped', todo: 'skipped' };

// Adds the tests of a suite, and returns what went wrong beside them.
function describeTests(suite, names, tests) {
  const errors = [];
  for (const task of suite.tasks) {
    const path = [...names, task.name];
    if (task.type === 'suite') errors.push(...describeTests(task, path, tests));
    else tests.push(outcome(path, STATES[task.result?.state ?? task.mode] ?? 'failed', task.result?.errors, task.result?.duration));
  }
  return [...errors, messagesOf(suite.result?.errors)];
}

async function runValidator(job, giveUp) {
  try {
    const loaded = modulesOf(job, giveUp).load(job.entry);
    const validate = loaded.validate ?? loaded.default?.validate ?? loaded.default;
    if (typeof validate !== 'function') throw new Error('it exports no function `validate`');
    return { returned: await validate(job.code) };
  } catch (error) {
    return { thrown: messageOf(error) };
  }
}

exports.start = async (address) => {
  await warmUp(address === null);
  if (address !== null) await serve(address, (job, giveUp) => (job.code === undefined ? runSuite : runValidator)(job, giveUp));
};
