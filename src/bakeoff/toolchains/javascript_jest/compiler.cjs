// Turns an exercise's files into scripts that a worker can run. It reads what the candidate wrote and runs none of it.
'use strict';
const path = require('node:path');
const babel = require('@babel/core');
const { keeping, serve } = require('./compiling.cjs');

const OPTIONS = {
  babelrc: false, configFile: false, browserslistConfigFile: false, compact: false, comments: false, root: __dirname, cwd: __dirname,
  presets: [
    [require.resolve('@babel/preset-env'), { targets: { node: 'current' }, modules: 'commonjs' }],
    require.resolve('@babel/preset-typescript'),
  ],
};
// What only a whole Jest can do.
const BEYOND = [
  [/\bjest\s*\.\s*(?:mock|doMock|unmock|dontMock|setMock|createMockFromModule|requireActual|requireMock|resetModules|isolateModules|isolateModulesAsync|enableAutomock|disableAutomock|deepUnmock|unstable_\w+|retryTimes|replaceProperty)\b/, 'it mocks modules'],
  [/\bto(?:Match|ThrowErrorMatching)\w*Snapshot\b/, 'it uses snapshots'],
  [/\blegacyFakeTimers\b/, 'it uses the old fake timers'],
  [/@jest-(?:environment|config)\b/, 'it chooses its environment'],
  [/\b(?:__dirname|__filename)\b/, 'it reads files'],
];

const scriptOf = keeping((name, source) => {
  if (name.endsWith('.json')) return `module.exports = ${JSON.stringify(JSON.parse(source))};`;
  return babel.transformSync(source, { ...OPTIONS, filename: path.join('/exercise', name) }).code;
});

function prepare({ files, entry, tests }) {
  const beyond = BEYOND.find(([pattern]) => tests.some((name) => pattern.test(files[name])));
  if (beyond) return { whole: beyond[1] };
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
  return { modules, entry };
}

serve(prepare, () => scriptOf('a.ts', 'export class A { #a: number = 1; get a() { return [...[this.#a]]; } }'));
