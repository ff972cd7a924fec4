// One candidate's process: Jest's runner and assertions are loaded, then it waits for one job, does it, tells the
// result and ends.
//
// The candidate is hostile. Everything that is used after its first line has run is taken hold of here, before; the
// test functions are handed to the test file and to nothing else; and the result is put together from primitive
// values, since a prototype may have been changed under any object.
'use strict';
const Module = require('node:module');
const path = require('node:path');
const vm = require('node:vm');
const { connect, lockDoors, messageOf, oneLine, reallyExit, send } = require('./host.cjs');
const { SAFE_MODULES } = require('./modules.cjs');
const { KEEPS_STATE, withHiddenState } = require('./state.cjs');

const nodeRequire = require;
const stringify = JSON.stringify;
const parse = JSON.parse;
const own = Object.getOwnPropertyDescriptor;
const same = Object.is;
const { ownKeys } = Reflect;
const everything = Object.prototype;
const has = Function.prototype.call.bind(Set.prototype.has);
const soon = globalThis.setImmediate;


// ------------------------------------------------------------------------------------------------ before the job

const hidden = Object.create(null);

function loadJest() {
  const compile = Module.prototype._compile;
  const load = Module._load;
  let replaced = 0;
  Module.prototype._compile = function (source, filename) {
    if (!KEEPS_STATE.test(filename)) return compile.call(this, source, filename);
    replaced += 1;
    this.hidden = hidden;
    return compile.call(this, withHiddenState(source, filename, 'module.hidden', true), filename);
  };
  // Snapshots are left to a whole Jest; loading what they need would take longer than all the rest.
  const none = () => { throw new Error('snapshots need a whole Jest'); };
  const snapshots = {
    addSerializer: none, toMatchInlineSnapshot: none, toMatchSnapshot: none,
    toThrowErrorMatchingInlineSnapshot: none, toThrowErrorMatchingSnapshot: none,
  };
  Module._load = (name, ...more) => (name === 'jest-snapshot' ? snapshots : load(name, ...more));
  const folder = path.dirname(require.resolve('jest-circus'));
  const part = (name) => require(path.join(folder, `${name}.js`)); // not among the package's exports
  const loaded = {
    circus: require('jest-circus'), state: part('state'), types: part('types'), utils: part('utils'), expect: require('@jest/expect').jestExpect,
    ModuleMocker: require('jest-mock').ModuleMocker, FakeTimers: require('@jest/fake-timers').ModernFakeTimers,
  };
  Module.prototype._compile = compile;
  Module._load = load;
  const { AsymmetricMatcher } = require('expect');
  if (replaced !== 6 || !hidden.isMatcher(loaded.expect.anything()) || loaded.expect.anything().constructor.prototype instanceof AsymmetricMatcher === false || Reflect.ownKeys(globalThis).some((key) => /JEST|jest-matchers/.test(String(key)))) {
    throw new Error('Jest keeps its state in another way than this was written for');
  }
  return loaded;
}

const { circus, state, types, utils, expect, ModuleMocker, FakeTimers } = loadJest();

function jestObject() {
  const mocker = new ModuleMocker(globalThis);
  const timers = new FakeTimers({ config: { fakeTimers: {}, rootDir: '/' }, global: globalThis });
  const jest = {
    fn: mocker.fn.bind(mocker), spyOn: mocker.spyOn.bind(mocker), mocked: mocker.mocked.bind(mocker),
    isMockFunction: mocker.isMockFunction,
    clearAllMocks: () => (mocker.clearAllMocks(), jest), resetAllMocks: () => (mocker.resetAllMocks(), jest),
    restoreAllMocks: () => (mocker.restoreAllMocks(), jest),
    setTimeout: (timeout) => ((hidden[types.TEST_TIMEOUT_SYMBOL] = timeout), jest),
    useFakeTimers: (config) => (timers.useFakeTimers(config), jest),
    useRealTimers: () => (timers.useRealTimers(), jest),
    getSeed: () => 0,
  };
  const names = [
    ...['advanceTimersByTime', 'advanceTimersByTimeAsync', 'advanceTimersToNextTimer', 'advanceTimersToNextTimerAsync'],
    ...['clearAllTimers', 'getRealSystemTime', 'getTimerCount', 'now', 'runAllTicks', 'runAllTimers', 'runAllTimersAsync'],
    ...['runOnlyPendingTimers', 'runOnlyPendingTimersAsync', 'setSystemTime'],
  ];
  for (const name of names) jest[name] = timers[name].bind(timers);
  return jest;
}

const { afterAll, afterEach, beforeAll, beforeEach, describe, it, test } = circus;
const GIVEN = {
  __proto__: null, afterAll, afterEach, beforeAll, beforeEach, describe, it, test, expect, jest: jestObject(),
  fit: it.only, xit: it.skip, xtest: test.skip, fdescribe: describe.only, xdescribe: describe.skip,
};
const TEST_NAMES = Object.keys(GIVEN);

async function noteAssertions(event) {
  if (event.name === 'test_start') expect.setState({ currentTestName: utils.getTestID(event.test) });
  if (event.name !== 'test_done') return;
  const { suppressedErrors } = expect.getState();
  expect.setState({ suppressedErrors: [] });
  const missing = expect.extractExpectedAssertionsErrors().map((failure) => failure.error);
  event.test.errors = event.test.errors.concat(suppressedErrors, missing);
}

// A small suite of our own takes the usual ways once, so that the job itself meets nothing for the first time.
async function rehearse() {
  state.resetState();
  describe('rehearsal', () => {
    beforeEach(() => {});
    test('passes', async () => {
      expect({ a: [1, { b: 2 }] }).toEqual({ a: [1, { b: 2 }] });
      expect(() => { throw new Error('x'); }).toThrow('x');
    });
    test('fails', () => canaryTest('word'));
  });
  await circus.run();
  state.resetState();
}

// --------------------------------------------------------------------------------------------- modules of the job

// Who may import what is settled for each file before the first one runs, in tables without a prototype: whatever a
// candidate then does to strings, maps or objects, a name leads to one of these entries with its own rights, or nowhere.
class Modules {
  constructor(sources, tests) {
    this.entries = Object.create(null);
    this.safe = Object.create(null);
    for (const name of SAFE_MODULES) this.safe[name] = this.safe[`node:${name}`] = true;
    for (const name of Object.keys(sources)) {
      const isTest = tests.includes(name);
      const names = ['require', 'module', 'exports', ...(isTest ? TEST_NAMES : [])];
      const extra = isTest ? TEST_NAMES.map((each) => GIVEN[each]) : [];
      const find = (asked) => this.find(asked, name, isTest);
      let make;
      try {
        make = new vm.Script(`(function (${names.join(', ')}) {"use strict";${sources[name]}\n})`, { filename: name }).runInThisContext();
      } catch (error) {
        make = () => { throw error; };
      }
      this.entries[name] = { __proto__: null, loaded: null, run: (made) => make(find, made, made.exports, ...extra) };
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

  find(asked, from, isTest) {
    const name = `${asked}`;
    if (name[0] === '.' || name[0] === '/') return this.load(this.resolve(name, from));
    if (isTest && name === '@jest/globals') return { __esModule: true, ...GIVEN };
    if (this.safe[name]) return nodeRequire(name);
    throw new Error(`${from} cannot import ${name}: it has the files beside it, and of Node what needs no files and no processes`);
  }

  resolve(asked, from) {
    const parts = asked[0] === '/' ? [] : from.split('/').slice(0, -1);
    for (const part of asked.split('/')) {
      if (part === '..') parts.pop();
      else if (part !== '.' && part !== '') parts.push(part);
    }
    const base = parts.join('/');
    const stem = base.replace(/\.[cm]?jsx?$/, '');
    for (const name of [base, `${stem}.ts`, `${stem}.tsx`, `${base}.ts`, `${base}.tsx`, `${base}.js`, `${base}.mjs`, `${base}.cjs`, `${base}.json`, `${base}/index.ts`, `${base}/index.js`]) {
      if (this.entries[name]) return name;
    }
    throw new Error(`Cannot find module '${asked}' from '${from}'`);
  }
}

// ------------------------------------------------------------------------------------------------------- the job

// What assertions, the runner and its clock are built on. Whoever replaces one of these is not solving the exercise.
const BINDINGS = [
  ...['Object', 'Function', 'Array', 'String', 'Number', 'Boolean', 'Symbol', 'RegExp', 'Promise', 'Proxy', 'Reflect'],
  ...['Map', 'Set', 'WeakMap', 'WeakSet', 'Error', 'TypeError', 'JSON', 'Math', 'BigInt'],
];
const CLOCKS = ['Date', 'performance', 'setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask'];

function watchedObjects(watchesTime) {
  const made = [Object, Object.prototype, Function.prototype, Array, Array.prototype, String.prototype, Number.prototype];
  made.push(Promise, Promise.prototype, Map.prototype, Set.prototype, WeakMap.prototype, RegExp.prototype, Reflect);
  made.push(Error.prototype, Symbol.prototype, Boolean.prototype, Number, Math, JSON);
  for (const empty of [[], new Map(), new Set(), '']) made.push(Object.getPrototypeOf(empty[Symbol.iterator]()));
  made.push(Object.getPrototypeOf(Object.getPrototypeOf(function* () {}.prototype)));
  if (watchesTime) made.push(Date, Date.prototype, performance, Object.getPrototypeOf(performance), process.hrtime);
  const objects = made.map((object) => [object, ownKeys(object).map((key) => [key, own(object, key)])]);
  const prototypes = made.filter((object) => own(object, 'constructor')).map((object) => [object, new Set(ownKeys(object))]);
  const names = watchesTime ? [...BINDINGS, ...CLOCKS] : BINDINGS;
  return { objects, prototypes, names, bound: names.map((name) => globalThis[name]), hrtime: process.hrtime, watchesTime };
}

// As with all that is built in; but where tests have a clock of their own, it has to be put in.
function freezeClocks() {
  for (const object of [Date, performance, Object.getPrototypeOf(performance), process.hrtime]) {
    for (const key of ownKeys(object)) {
      if (own(object, key).configurable) Object.defineProperty(object, key, 'value' in own(object, key) ? { writable: false, configurable: false } : { configurable: false });
    }
    Object.preventExtensions(object);
  }
  for (const name of CLOCKS) Object.defineProperty(globalThis, name, { value: globalThis[name], writable: false, configurable: false });
  Object.defineProperty(process, 'hrtime', { value: process.hrtime, writable: false, configurable: false });
}

// A name of its own on a built-in prototype is a matter of taste, unless assertions or promises go by it.
const TELLING = { __proto__: null, asymmetricMatch: true, $$typeof: true, then: true, toJSON: true, nodeType: true, size: true, _isMockFunction: true };

function added(prototypes) {
  for (let i = 0; i < prototypes.length; i++) {
    const object = prototypes[i][0];
    const keys = ownKeys(object);
    for (let k = 0; k < keys.length; k++) {
      const key = keys[k];
      const tells = object === everything || typeof key === 'symbol' || TELLING[key];
      if (tells && !has(prototypes[i][1], key)) return typeof key === 'symbol' ? 'a symbol of a built-in object' : `${key}`;
    }
  }
  return null;
}

function changedBuiltin({ objects, prototypes, names, bound, hrtime, watchesTime }) {
  for (let i = 0; i < objects.length; i++) {
    const object = objects[i][0];
    const before = objects[i][1];
    for (let k = 0; k < before.length; k++) {
      const key = before[k][0];
      const then = before[k][1];
      const is = own(object, key);
      if (!is || !same(is.value, then.value) || !same(is.get, then.get) || !same(is.set, then.set)) {
        return typeof key === 'symbol' ? 'a symbol of a built-in object' : `${key}`;
      }
    }
  }
  for (let i = 0; i < names.length; i++) {
    if (!same(globalThis[names[i]], bound[i])) return names[i];
  }
  if (watchesTime && !same(process.hrtime, hrtime)) return 'hrtime';
  return added(prototypes);
}

// The canary is a test that must fail, and must fail in every one of these ways.
function canaryChecks(word) {
  const other = `${word}!`;
  return [
    () => expect([word]).toEqual([other]),
    () => expect({ word: [word] }).toStrictEqual({ word: [other] }),
    () => expect(word).toContain(other),
    () => expect(word).toMatch(other),
    () => expect([{ word }]).toMatchObject([{ word: other }]),
    () => expect(word.length).toBeGreaterThan(other.length),
    () => expect(word.length).toBeCloseTo(other.length),
    () => expect(null).toBeTruthy(),
    () => expect(word).toBeUndefined(),
    () => expect(() => word).toThrow(),
    () => expect(word).not.toBe(word),
    () => expect(GIVEN.jest.fn()).toHaveBeenCalled(),
    () => expect(word).toBe(other),
  ];
}

function canaryTest(word) {
  const checks = canaryChecks(word);
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
}

// Somewhere among the tests, but with no hook of theirs: those may count.
function placeCanary(place) {
  const { rootDescribeBlock: root, hasFocusedTests } = state.getState();
  const canary = root.children.shift();
  root.tests.shift();
  if (hasFocusedTests) canary.mode = 'only';
  const slots = [];
  const visit = (block) => {
    if (block.mode === 'skip') return;
    for (let i = 0; i <= block.children.length; i++) slots.push([block, i]);
    for (const child of block.children) if (child.type === 'describeBlock') visit(child);
  };
  visit(root);
  const [block, index] = slots[Math.floor(place * slots.length)];
  block.children.splice(index, 0, canary);
}

async function runSuite(job) {
  if (!job.fakesTime) freezeClocks();
  const modules = new Modules(job.modules, job.tests);
  state.resetState();
  await state.dispatch({ name: 'setup', parentProcess: process, runtimeGlobals: GIVEN });
  const watched = watchedObjects(!job.fakesTime);
  let changed = null;
  const inspect = () => { changed ??= changedBuiltin(watched); };
  // Before any hook of the suite could put back what was changed for the test alone.
  state.addEventHandler((event) => {
    if (event.name === 'test_fn_success' || event.name === 'test_fn_failure') inspect();
  });
  let unloaded = null;
  test(job.canary, () => canaryTest(job.word));
  try {
    modules.load(job.entry);
  } catch (error) {
    unloaded = messageOf(error);
  }
  inspect();
  const { rootDescribeBlock: root } = state.getState();
  if (unloaded === null && changed === null) {
    placeCanary(job.place);
    await circus.run();
    await new Promise((done) => soon(() => soon(done)));
    inspect();
  } else {
    root.children.length = 0;
  }
  return report(job, root, unloaded, changed);
}

// ---------------------------------------------------------------------------------------------------- the result

function messagesOf(errors) {
  let text = '';
  for (let i = 0; i < errors.length && i < 20; i++) {
    const each = errors[i];
    const error = typeof each === 'object' && each !== null && typeof each.length === 'number' && !own(each, 'message') ? each[0] ?? each[1] : each;
    text += `${text && '\n'}${messageOf(error)}`;
  }
  return text;
}

function stateOf(each) {
  if (each.status === 'skip' || each.status === 'todo') return 'skipped';
  return each.status === 'done' && each.errors.length === 0 ? 'passed' : 'failed';
}

function describeTests(job, block, prefix, found) {
  const children = block.children;
  for (let i = 0; i < children.length; i++) {
    const each = children[i];
    const whole = prefix ? `${prefix} > ${each.name}` : `${each.name}`;
    if (each.type === 'describeBlock') {
      describeTests(job, each, whole, found);
      continue;
    }
    const name = each.name === job.canary ? job.canary : whole;
    const message = stringify(messagesOf(each.errors));
    found.text += `${found.text && ','}{"name":${stringify(name)},"state":"${stateOf(each)}","message":${message},"seconds":${(each.duration ?? 0) / 1000 || 0}}`;
  }
}

function report(job, root, unloaded, changed) {
  const found = { __proto__: null, text: '' };
  describeTests(job, root, '', found);
  const error = unloaded ?? messagesOf(state.getState().unhandledErrors);
  return `{"proof":${stringify(job.proof)},"tests":[${found.text}],"error":${stringify(error)},"changed":${stringify(changed)}}`;
}

async function start(address) {
  state.addEventHandler(noteAssertions);
  await rehearse();
  const socket = await connect(address);
  const descriptor = socket._handle.fd;
  const asked = oneLine(socket);
  lockDoors();
  (await import('./builtins.mjs')).freezeBuiltins();
  send(descriptor, '{"ready":true}');
  const job = parse(await asked);
  socket.pause();
  send(descriptor, await runSuite(job));
  reallyExit(0);
}

start(process.argv[2]);
