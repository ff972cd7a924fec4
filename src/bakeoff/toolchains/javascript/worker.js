// One candidate's process: libraries are loaded, then it waits for one job, does it, tells the result and ends.
//
// The candidate is hostile. Everything that is used after its first line has run is taken hold of here, before; the
// test functions are handed to the test's own files and to nothing else; and the result is put together from
// primitive values, since a prototype may have been changed under any object.
const vm = require('node:vm');
const { isBuiltin } = require('node:module');
const { BINDINGS, freezeBuiltins, watchedObjects } = require('./builtins.mjs');
const { connect, lockDoors, messageOf, oneLine, reallyExit, send } = require('./host.cjs');

const nodeRequire = require;
const stringify = JSON.stringify;
const parse = JSON.parse;
const own = Object.getOwnPropertyDescriptor;
const { setImmediate: soon } = globalThis;

const TEST_NAMES = [
  ...['suite', 'test', 'describe', 'it', 'chai', 'expect', 'assert', 'expectTypeOf', 'assertType', 'vitest', 'vi'],
  ...['beforeAll', 'afterAll', 'beforeEach', 'afterEach', 'onTestFinished', 'onTestFailed', 'aroundEach', 'aroundAll'],
];

let vitest; // what `import … from 'vitest'` gives to a test
let provided; // modules for tests, by name
let svelte; // modules for everyone, by name
let runner;
let tests; // how Vitest keeps the functions of its tests

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
  svelte = Object.assign(Object.create(null), require('bakeoff:svelte'));
  for (const name of ['svelte', 'svelte/internal/client', 'svelte/store', 'svelte/reactivity']) svelte[name]();
  provided = testModules();
  runner = makeRunner();
  tests = require('@vitest/runner');
  // What V8 keeps of the rehearsal is in the cache; here it is enough that Svelte has prepared the page.
  await (rehearsing ? rehearse() : mountOnce());
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
  __hidden.__vitest_worker__ = {
    ctx: { pool: 'forks', files: [], config, projectName: '' }, config, providedContext: {},
    rpc: new Proxy({}, { get: () => ignored }), environment: { name: 'jsdom', viteEnvironment: 'client' },
    evaluatedModules: { getModuleById() {}, idToModuleMap: new Map() }, moduleExecutionInfo: new Map(),
    durations: { environment: 0, prepare: 0 }, metaEnv: metaEnv(), resolvingModules: new Set(), filepath: '/test.ts',
    onCancel() {}, onCleanup() {}, onFilterStackTrace: (stack) => stack,
  };
}

function testModules() {
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
  const event = require('@testing-library/user-event');
  const dom = require('@testing-library/dom');
  return {
    __proto__: null,
    vitest: () => vitest,
    '@testing-library/svelte': withCleanup,
    '@testing-library/svelte/svelte5': withCleanup,
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
    onCollected([file]) {
      this.arrange?.(file);
    }
    // Snapshots are left to a fresh Vitest; without them these three have little to do.
    onBeforeRunSuite(suite) {
      this.workerState.current = suite;
    }
    onAfterRunSuite(suite) {
      this.workerState.current = suite.suite || suite.file;
    }
    onAfterRunFiles() {}
    onAfterTryTask(test) {
      this.inspect?.(); // before any hook of the suite could put back what was changed for the test alone
      return super.onAfterTryTask(test);
    }
    onBeforeTryTask(test) {
      vitest.expect.setState({
        assertionCalls: 0, isExpectingAssertions: false, isExpectingAssertionsError: null,
        expectedAssertionsNumber: null, expectedAssertionsNumberErrorGen: null, currentTestName: getTestName(test),
      });
    }
  }
  const made = new Runner(__hidden.__vitest_worker__.config);
  made.pool = 'forks';
  return made;
}

async function startTests(load, arrange) {
  runner.load = load;
  runner.arrange = arrange;
  const [file] = await tests.startTests([{ filepath: '/test.ts', testLocations: undefined }], runner);
  return file;
}

async function mountOnce() {
  const { mount, unmount } = svelte.svelte();
  await require('@testing-library/svelte').setup();
  await unmount(mount(require('./rehearsal.svelte').default, { target: document.createElement('div') }));
}

// A small suite of our own takes every usual way once, so that the job itself meets nothing for the first time.
async function rehearse() {
  const { render, screen, setup, act, cleanup } = require('@testing-library/svelte');
  const { default: userEvent } = require('@testing-library/user-event');
  const { default: Component } = require('./rehearsal.svelte');
  const { expect, vi } = vitest;
  await setup();
  await startTests(() => {
    vitest.test('passes', async () => {
      render(Component, { start: 1 });
      await userEvent.setup().click(screen.getByRole('button', { name: '1' }));
      expect(screen.getByRole('button')).toHaveTextContent('2');
      expect(screen.getByText('4')).toBeInTheDocument();
      expect({ a: [1] }).toEqual({ a: [1] });
      expect(vi.fn()).not.toHaveBeenCalled();
    });
    vitest.test('fails', makeCanary({ word: 'a word', entry: 'test.ts', place: 0 }));
  });
  await act();
  cleanup();
  document.body.innerHTML = '';
}

// --------------------------------------------------------------------------------------------- modules of the job

// Who may import what is settled for each file before the first one runs, in tables without a prototype: whatever a
// component then does to strings, maps or objects, a name leads to one of these entries with its own rights, or nowhere.
class Modules {
  // What is not the test is the candidate's, whatever it is called.
  constructor(sources, test) {
    this.entries = Object.create(null);
    this.test = test;
    for (const name of Object.keys(sources)) {
      const isCandidate = name !== test;
      const names = ['require', 'module', 'exports', '__meta_env', ...(isCandidate ? [] : TEST_NAMES)];
      const script = new vm.Script(`(function (${names.join(', ')}) {"use strict";${sources[name]}\n})`, { filename: name });
      const find = isCandidate ? (asked) => this.forCandidate(asked, name) : (asked) => this.forTest(asked, name);
      const extra = isCandidate ? [] : TEST_NAMES.map((each) => vitest[each]);
      const make = script.runInThisContext();
      this.entries[name] = {
        __proto__: null, loaded: null, run: (made) => make(find, made, made.exports, __hidden.__vitest_worker__.metaEnv, ...extra),
      };
    }
  }

  load(name) {
    const entry = this.entries[name];
    if (entry.loaded) return entry.loaded.exports;
    const made = { exports: {} };
    entry.loaded = made;
    try {
      entry.run(made);
    } catch (error) {
      entry.loaded = null;
      throw error;
    }
    return made.exports;
  }

  forCandidate(asked, from) {
    if (asked[0] === '.' || asked[0] === '/') {
      const name = this.resolve(asked, from);
      if (name !== this.test) return this.load(name);
    }
    if (svelte[asked]) return svelte[asked]();
    throw new Error(`${from} cannot import ${asked}: a component has Svelte and the files beside it`);
  }

  forTest(asked, from) {
    if (asked[0] === '.' || asked[0] === '/') return this.load(this.resolve(asked, from));
    if (svelte[asked]) return svelte[asked]();
    if (provided[asked]) return provided[asked]();
    if (isBuiltin(asked)) return nodeRequire(asked);
    throw new Error(`${from} cannot import ${asked}: it is not installed`);
  }

  resolve(asked, from) {
    const parts = asked[0] === '/' ? [] : from.split('/').slice(0, -1);
    for (const part of asked.replace(/\?.*$/, '').split('/')) {
      if (part === '..') parts.pop();
      else if (part !== '.' && part !== '') parts.push(part);
    }
    const base = parts.join('/');
    const stem = base.replace(/\.js$/, '');
    for (const name of [base, `${stem}.ts`, `${base}.ts`, `${base}.js`, `${base}.mjs`, `${base}.json`, `${base}/index.ts`, `${base}/index.js`]) {
      if (this.entries[name]) return name;
    }
    throw new Error(`Cannot find module '${asked}' imported from '${from}'`);
  }
}

// ------------------------------------------------------------------------------------------------------- the job

const same = Object.is;
const bound = BINDINGS.map((name) => globalThis[name]);

// They are frozen, so this finds what should not be possible, and names that only tests have.
function changedBuiltin(watched) {
  for (let i = 0; i < watched.length; i++) {
    const [object, before] = watched[i];
    for (let k = 0; k < before.length; k++) {
      const key = before[k][0];
      const then = before[k][1];
      const is = own(object, key);
      if (!is || !same(is.value, then.value) || !same(is.get, then.get) || !same(is.set, then.set)) {
        return typeof key === 'symbol' ? 'a symbol of a built-in object' : `${key}`;
      }
    }
  }
  for (let i = 0; i < BINDINGS.length; i++) {
    if (!same(globalThis[BINDINGS[i]], bound[i])) return BINDINGS[i];
  }
  for (let i = 0; i < TEST_NAMES.length; i++) {
    if (own(globalThis, TEST_NAMES[i])) return TEST_NAMES[i];
  }
  return null;
}

// The canary is a test that must fail, and must fail in every one of these ways. Its script bears the name of the suite's
// own, so that no stack tells them apart.
const CANARY = `(function (expect, vi, document, within, word, other) { return () => {
  const lone = document.createElement('p');
  lone.textContent = word;
  const checks = [
    () => expect(lone).toBeInTheDocument(),
    () => expect(lone).toHaveTextContent(other),
    () => expect(vi.fn()).toHaveBeenCalled(),
    () => expect([word]).toEqual([other]),
    () => expect({ asymmetricMatch: () => true }).toEqual(word),
    () => expect(word).toContain(other),
    () => expect(null).toBeTruthy(),
    () => expect(lone).not.toHaveTextContent(word),
    () => within(document.body).getByText(word),
    () => expect(word).toBe(other),
  ];
  let last;
  for (let i = 0; i < checks.length; i++) {
    try {
      checks[i]();
    } catch (error) {
      last = error;
      continue;
    }
    return;
  }
  throw last;
}; })`;

function makeCanary({ word, entry, place }) {
  const script = new vm.Script(CANARY, { filename: entry, lineOffset: Math.floor(place * 100) });
  const { within } = require('@testing-library/dom');
  return script.runInThisContext()(vitest.expect, vitest.vi, document, within, word, `${word}!`);
}

async function runSuite(job) {
  const modules = new Modules(job.modules, job.entry);
  const errors = [];
  const note = (kind, title) => (error) => {
    // As in Vitest: whoever listens for these takes care of them.
    if (process.listenerCount(kind) <= 1) errors[errors.length] = `${title}: ${messageOf(error)}`;
  };
  process.on('uncaughtException', note('uncaughtException', 'Uncaught Exception'));
  process.on('unhandledRejection', note('unhandledRejection', 'Unhandled Rejection'));
  const load = () => {
    vitest.test(job.canary, makeCanary(job));
    return modules.load(job.entry);
  };
  freezeBuiltins();
  const watched = watchedObjects();
  const endings = new WeakMap();
  let changed = null;
  runner.inspect = () => {
    changed ??= changedBuiltin(watched);
  };
  const file = await startTests(load, (collected) => {
    const { tasks } = collected;
    if (!tasks.length) return; // the test file could not be loaded
    keepEndings(collected, endings);
    const [canary] = tasks.splice(0, 1);
    canary.mode = 'run'; // also where the suite runs only some of its tests
    tasks.splice(Math.floor(job.place * (tasks.length + 1)), 0, canary);
  });
  await new Promise((done) => soon(() => soon(done)));
  runner.inspect();
  return report(job, file, errors, changed, endings);
}

// How each test's function ended the last time, in a place of our own: what Vitest notes of it must agree with that.
function keepEndings({ tasks }, endings) {
  for (const task of tasks) {
    if (task.type === 'suite') {
      keepEndings(task, endings);
      continue;
    }
    const run = tests.getFn(task);
    if (!run) continue; // one that is still to be written
    tests.setFn(task, async () => {
      endings.set(task, 'begun');
      try {
        await run();
      } catch (error) {
        endings.set(task, 'threw');
        throw error;
      }
      endings.set(task, 'returned');
    });
  }
}

function stateOf(task, endings) {
  const state = STATES[task.result?.state ?? task.mode] ?? 'failed';
  if (state !== 'passed') return state;
  return endings.get(task) === (task.fails ? 'threw' : 'returned') ? 'passed' : 'failed';
}

// ---------------------------------------------------------------------------------------------------- the result

function messagesOf(result) {
  const errors = result?.errors;
  let text = '';
  for (let i = 0; errors && i < errors.length && i < 20; i++) text += `${text && '\n'}${messageOf(errors[i])}`;
  return text;
}

const STATES = { __proto__: null, pass: 'passed', fail: 'failed', skip: 'skipped', todo: 'skipped' };

function describeTests(task, prefix, found, endings) {
  const tasks = task.tasks;
  for (let i = 0; i < tasks.length; i++) {
    const each = tasks[i];
    const name = prefix === null ? `${each.name}` : `${prefix} > ${each.name}`;
    if (each.type === 'suite') {
      describeTests(each, name, found, endings);
      continue;
    }
    const state = stateOf(each, endings);
    const seconds = (each.result?.duration ?? 0) / 1000;
    const message = stringify(messagesOf(each.result));
    found.text += `${found.text && ','}{"name":${stringify(name.toWellFormed())},"state":"${state}","message":${message},"seconds":${+seconds || 0}}`;
  }
  if (task.result?.errors?.length) found.errors += `${found.errors && '\n'}${messagesOf(task.result)}`;
}

function report(job, file, errors, changed, endings) {
  const found = { __proto__: null, text: '', errors: '' };
  describeTests(file, null, found, endings);
  let error = found.errors;
  for (let i = 0; i < errors.length && i < 20; i++) error += `${error && '\n'}${errors[i]}`;
  return `{"proof":${stringify(job.proof)},"tests":[${found.text}],"error":${stringify(error)},"changed":${stringify(changed)}}`;
}

async function runValidator(job) {
  const modules = new Modules(job.modules, job.entry);
  let outcome;
  try {
    const loaded = modules.load(job.entry);
    const validate = loaded.validate ?? loaded.default?.validate ?? loaded.default;
    if (typeof validate !== 'function') throw new Error('it exports no function `validate`');
    outcome = stringify({ returned: await validate(job.code) });
  } catch (error) {
    outcome = stringify({ thrown: messageOf(error) });
  }
  return `{"proof":${stringify(job.proof)},"outcome":${outcome}}`;
}

exports.start = async (address) => {
  await warmUp(address === null);
  if (address === null) return;
  const socket = await connect(address);
  const descriptor = socket._handle.fd;
  const asked = oneLine(socket);
  lockDoors();
  send(descriptor, '{"ready":true}');
  const job = parse(await asked);
  socket.pause();
  const text = await (job.kind === 'validate' ? runValidator(job) : runSuite(job));
  send(descriptor, text);
  reallyExit(0);
};
