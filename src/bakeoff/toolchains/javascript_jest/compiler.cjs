// Turns an exercise's files into scripts that a worker can run. It reads what the candidate wrote and runs none of it.
'use strict';
const net = require('node:net');
const path = require('node:path');
const readline = require('node:readline');
const babel = require('@babel/core');
const { SAFE_MODULES } = require('./modules.cjs');

const MOST_KEPT = 500;
const OPTIONS = {
  babelrc: false, configFile: false, browserslistConfigFile: false, compact: false, comments: false, root: __dirname, cwd: __dirname,
  presets: [
    [require.resolve('@babel/preset-env'), { targets: { node: 'current' }, modules: 'commonjs' }],
    require.resolve('@babel/preset-typescript'),
  ],
};
// What only a whole Jest can do. Tests alone are asked: a candidate must not be able to choose how it is tested.
const BEYOND = [
  [/\bjest\s*\.\s*(?:mock|doMock|unmock|dontMock|setMock|createMockFromModule|requireActual|requireMock|resetModules|isolateModules|isolateModulesAsync|enableAutomock|disableAutomock|deepUnmock|unstable_\w+|retryTimes|replaceProperty)\b/, 'it mocks modules'],
  [/\bto(?:Match|ThrowErrorMatching)\w*Snapshot\b/, 'it uses snapshots'],
  [/\blegacyFakeTimers\b/, 'it uses the old fake timers'],
  [/@jest-(?:environment|config)\b/, 'it chooses its environment'],
  [/\b(?:__dirname|__filename)\b/, 'it reads files'],
];
const FAKES_TIME = /\buseFakeTimers\b|\b(?:spyOn|defineProperty)\s*\(\s*(?:globalThis|global|Date|performance|process)\b|\b(?:Date|performance)(?:\s*\.\s*now)?\s*=(?![=>])/;
const IMPORTS = /(?:\bfrom\s*|\bimport\s*|\b(?:require|import)\s*\(\s*)(['"])([^'"\n]+)\1/g;

const kept = new Map();
let replacesBuiltins; // a test may, and then nothing can be frozen

function scriptOf(name, source) {
  const key = `${name}\n${source}`;
  let made = kept.get(key);
  if (made === undefined) {
    made = compiled(name, source);
    kept.set(key, made);
    if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
  }
  return made;
}

function compiled(name, source) {
  if (name.endsWith('.json')) return `module.exports = ${JSON.stringify(JSON.parse(source))};`;
  return babel.transformSync(source, { ...OPTIONS, filename: path.join('/exercise', name) }).code;
}

function whyBeyond(source) {
  if (replacesBuiltins.test(source)) return 'it replaces what is built in';
  const found = BEYOND.find(([pattern]) => pattern.test(source));
  if (found) return found[1];
  for (const [, , name] of source.matchAll(IMPORTS)) {
    const known = /^[./]/.test(name) || name === '@jest/globals' || SAFE_MODULES.has(name.replace(/^node:/, ''));
    if (!known) return `it imports ${name}`;
  }
  return null;
}

function prepare({ files, entry, tests }) {
  for (const name of tests) {
    const beyond = whyBeyond(files[name]);
    if (beyond) return { fresh: beyond };
  }
  const modules = {};
  for (const [name, source] of Object.entries(files)) {
    if (!/\.(?:[cm]?[jt]sx?|json)$/.test(name) || name.endsWith('.d.ts')) continue;
    try {
      modules[name] = scriptOf(name, source);
    } catch (error) {
      // What nobody imports need not be right; whoever does import it is told.
      const message = `${name}: ${String(error.message).replace(/^\/exercise\/[^:]*: /, '')}`;
      modules[name] = `throw new SyntaxError(${JSON.stringify(message)});`;
    }
  }
  return { modules, entry, tests, fakesTime: tests.some((name) => FAKES_TIME.test(files[name])) };
}

async function start(address) {
  ({ REPLACES_BUILTINS: replacesBuiltins } = await import('./beyond.mjs'));
  const socket = net.connect(address, () => {
    scriptOf('a.ts', 'export class A { #a: number = 1; get a() { return [...[this.#a]]; } }');
    socket.write('{"ready":true}\n');
  });
  socket.on('close', () => process.exit(0));
  readline.createInterface({ input: socket }).on('line', (line) => {
    socket.write(`${JSON.stringify(prepare(JSON.parse(line)))}\n`);
  });
}

start(process.argv[2]);
