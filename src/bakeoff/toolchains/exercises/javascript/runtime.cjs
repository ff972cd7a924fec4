// Jest's runtime, but a candidate has only those modules of Node that lead to no files, processes or packages.
'use strict';
const { default: Runtime } = require('jest-runtime');
const { SAFE_MODULES } = require('./modules.cjs');

const trusted = new Set(process.env.BAKEOFF_TESTS.split('\n'));
const root = `${process.cwd()}/`;

module.exports = class CandidateRuntime extends Runtime {
  requireModuleOrMock(from, name) {
    const theirs = from.startsWith(root) && !trusted.has(from.slice(root.length));
    if (theirs && !/^[./]/.test(name) && !SAFE_MODULES.has(name.replace(/^node:/, ''))) {
      throw new Error(`${from.slice(root.length)} cannot import ${name}: it has the files beside it, and of Node what needs no files and no processes`);
    }
    return super.requireModuleOrMock(from, name);
  }
};
