// One candidate's process: Jest's runner and assertions are loaded, then it waits for one job, does it, tells the
// result and ends.
'use strict';
const Module = require('node:module');
const path = require('node:path');
const { messagesOf, messageOf, outcome, serve, settle } = require('./host.cjs');
const { Modules } = require('./modules.cjs');

// ------------------------------------------------------------------------------------------------ before the job

function loadJest() {
  // Snapshots are left to a whole Jest; loading what they need would take longer than all the rest.
  const none = () => { throw new Error('snapshots need a whole Jest'); };
  const snapshots = {
    addSerializer: none, toMatchInlineSnapshot: none, toMatchSnapshot: none,
    toThrowErrorMatchingInlineSnapshot: none, toThrowErrorMatchingSnapshot: none,
  };
  const load = Module._load;
  Module._load = (name, ...more) => (name === 'jest-snapshot' ? snapshots : load(name, ...more));
  const folder = path.dirname(require.resolve('jest-circus'));
  const part = (name) => require(path.join(folder, `${name}.js`)); // not among the package's exports
  const loaded = {
    circus: require('jest-circus'), state: part('state'), types: part('types'), utils: part('utils'), expect: require('@jest/expect').jestExpect,
    ModuleMocker: require('jest-mock').ModuleMocker, FakeTimers: require('@jest/fake-timers').ModernFakeTimers,
  };
  Module._load = load;
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
    setTimeout: (timeout) => ((globalThis[types.TEST_TIMEOUT_SYMBOL] = timeout), jest),
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
const GLOBALS = {
  afterAll, afterEach, beforeAll, beforeEach, describe, it, test, expect, jest: jestObject(),
  fit: it.only, xit: it.skip, xtest: test.skip, fdescribe: describe.only, xdescribe: describe.skip,
};

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
    test('fails', () => { expect({ a: ['one'] }).toEqual({ a: ['two'] }); });
  });
  await circus.run();
  state.resetState();
}

// ------------------------------------------------------------------------------------------------------- the job

async function runSuite(job, giveUp) {
  const provided = { '@jest/globals': () => ({ __esModule: true, ...GLOBALS }) };
  const modules = new Modules(job.modules, { provided, nodeRequire: require, giveUp });
  state.resetState();
  await state.dispatch({ name: 'setup', parentProcess: process, runtimeGlobals: GLOBALS });
  try {
    modules.load(job.entry);
  } catch (error) {
    return { tests: [], error: messageOf(error) };
  }
  await circus.run();
  await settle();
  const { rootDescribeBlock, unhandledErrors } = state.getState();
  return { tests: describeTests(rootDescribeBlock, []), error: messagesOf(unhandledErrors.map(thrown)) };
}

function describeTests(block, names) {
  return block.children.flatMap((each) => {
    const path = [...names, each.name];
    if (each.type === 'describeBlock') return describeTests(each, path);
    return [outcome(path, stateOf(each), each.errors.map(thrown), each.duration)];
  });
}

function stateOf({ status, errors }) {
  if (status === 'skip' || status === 'todo') return 'skipped';
  return status === 'done' && errors.length === 0 ? 'passed' : 'failed';
}

// Jest keeps some errors together with another one that tells where the test stands.
const thrown = (error) => (Array.isArray(error) ? error[0] ?? error[1] : error);

async function start(address) {
  Object.assign(globalThis, GLOBALS);
  state.addEventHandler(noteAssertions);
  await rehearse();
  await serve(address, runSuite);
}

start(process.argv[2]);
