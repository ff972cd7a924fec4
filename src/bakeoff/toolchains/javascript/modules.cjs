// The files of one job as modules, and what they may import beside each other.
'use strict';
const vm = require('node:vm');
const { isBuiltin } = require('node:module');

// A worker has the scripts of its job and no files.
const NEEDS_FILES = new Set(['child_process', 'cluster', 'fs', 'fs/promises', 'module', 'worker_threads']);
const SUFFIXES = ['', '.ts', '.tsx', '.js', '.jsx', '.mjs', '.cjs', '.json', '/index.ts', '/index.tsx', '/index.js'];

class Modules {
  // `provided` are functions that return a module, by its name; `given` are names that every module finds in its scope.
  constructor(sources, { provided, nodeRequire, giveUp, given = {} }) {
    this.entries = new Map();
    Object.assign(this, { provided, nodeRequire, giveUp });
    const names = ['require', 'module', 'exports', ...Object.keys(given)];
    const values = Object.values(given);
    for (const [name, source] of Object.entries(sources)) {
      const find = (asked) => this.find(`${asked}`, name);
      const run = (made) => {
        const script = new vm.Script(`(function (${names.join(', ')}) {"use strict";${source}\n})`, { filename: name });
        script.runInThisContext()(find, made, made.exports, ...values);
      };
      this.entries.set(name, { run, loaded: null });
    }
  }

  load(name) {
    const entry = this.entries.get(name);
    if (entry.loaded) return entry.loaded.exports;
    entry.loaded = { exports: {} };
    try {
      entry.run(entry.loaded);
    } catch (error) {
      entry.loaded = null;
      throw error;
    }
    return entry.loaded.exports;
  }

  find(asked, from) {
    if (asked[0] === '.' || asked[0] === '/') return this.load(this.resolve(asked, from));
    if (Object.hasOwn(this.provided, asked)) return this.provided[asked]();
    if (NEEDS_FILES.has(asked.replace(/^node:/, ''))) this.giveUp(`it imports ${asked}`);
    if (isBuiltin(asked)) return this.nodeRequire(asked);
    if (this.isInstalled(asked)) this.giveUp(`it imports ${asked}`);
    throw new Error(`${from} cannot import ${asked}: it is not installed`);
  }

  isInstalled(asked) {
    try {
      return Boolean(this.nodeRequire.resolve(asked));
    } catch (error) {
      return error.code === 'ERR_PACKAGE_PATH_NOT_EXPORTED'; // it is there, for `import` alone
    }
  }

  resolve(asked, from) {
    const parts = asked[0] === '/' ? [] : from.split('/').slice(0, -1);
    for (const part of asked.split('/')) {
      if (part === '..') parts.pop();
      else if (part !== '.' && part !== '') parts.push(part);
    }
    const base = parts.join('/');
    const stem = base.replace(/\.[cm]?jsx?$/, '');
    const found = [base, `${stem}.ts`, `${stem}.tsx`, ...SUFFIXES.map((suffix) => base + suffix)].find((name) => this.entries.has(name));
    if (found === undefined) throw new Error(`Cannot find module '${asked}' imported from '${from}'`);
    return found;
  }
}

module.exports = { Modules };
