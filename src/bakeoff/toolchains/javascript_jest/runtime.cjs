// Jest's runtime, but a candidate has only those modules of Node that lead to no files, processes or packages, no way to the
// modules of its tests, and nothing of Jest's. Where no test replaces what is built in, nobody can.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');
const { default: Runtime } = require('jest-runtime');
const { SAFE_MODULES } = require('./modules.cjs');
const { KEEPS_STATE, withHiddenState } = require('./state.cjs');

const trusted = new Set(process.env.BAKEOFF_TESTS.split('\n'));
const frozen = process.env.BAKEOFF_FROZEN === 'yes';
const root = `${process.cwd()}/`;
const hidden = `require(${JSON.stringify(path.join(__dirname, 'hidden.cjs'))})`;
const builtins = fs.readFileSync(path.join(__dirname, 'builtins.mjs'), 'utf8').replace(/^export /gm, '');
const FREEZE = `(() => {${builtins}\nreturn freezeBuiltins; })()`;
const ENTRANCES = ['binding', '_linkedBinding', 'dlopen', 'getBuiltinModule', 'mainModule', '_getActiveHandles', 'abort', 'kill', 'reallyExit'];

const isTheirs = (file) => file.startsWith(root) && !trusted.has(file.slice(root.length));
const isFile = (name) => /^[./]/.test(name);

function mayHave(from, name) {
  if (isFile(name)) return path.resolve(path.dirname(from), name).startsWith(root);
  return SAFE_MODULES.has(name.replace(/^node:/, ''));
}

module.exports = class CandidateRuntime extends Runtime {
  requireModule(from, name, ...more) {
    if (from === this._testPath && name === undefined) this.lockDoors();
    return super.requireModule(from, name, ...more);
  }

  lockDoors() {
    // Ours too: a candidate finds its way there by the constructor of any function that it is given.
    for (const freeze of frozen ? [vm.runInContext(FREEZE, this._environment.getVmContext()), vm.runInThisContext(FREEZE)] : []) {
      freeze(['prepareStackTrace']);
    }
    for (const name of ENTRANCES) {
      for (const each of [process, this._environment.global.process]) Object.defineProperty(each, name, { value: undefined, configurable: false, writable: true });
    }
  }

  requireModuleOrMock(from, asked) {
    const name = `${asked}`;
    if (isTheirs(from) && !mayHave(from, name)) {
      throw new Error(`${from.slice(root.length)} cannot import ${name}: it has the files beside it, and of Node what needs no files and no processes`);
    }
    return super.requireModuleOrMock(from, name);
  }

  // Jest's own `require` leads to every module by its cache, and from there to what that module may require.
  _createRequireImplementation(from, options) {
    const made = super._createRequireImplementation(from, options);
    if (options?.isInternalModule || !isTheirs(from.filename)) return made;
    return Object.assign((name) => made(name), { resolve: made.resolve, cache: Object.create(null), extensions: Object.create(null) });
  }

  _execModule(module, options, registry, from, name) {
    if (options?.isInternalModule || !isTheirs(module.filename)) return super._execModule(module, options, registry, from, name);
    const main = this._mainModule; // that of the tests, as the parent is in the registry
    this._mainModule = null;
    try {
      return super._execModule(module, options, new Map(), undefined, name);
    } finally {
      this._mainModule = main;
    }
  }

  transformFile(filename, options) {
    const source = super.transformFile(filename, options);
    return options?.isInternalModule && KEEPS_STATE.test(filename) ? withHiddenState(source, filename, hidden, false) : source;
  }
};
