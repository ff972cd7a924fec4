// A whole Jest for one candidate: slow, and able to do everything. Reads the proof first, prints the result last.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { runCLI } = require('jest');

const { proof, entry, tests } = JSON.parse(fs.readFileSync(0, 'utf8'));
const { writeSync } = fs;
const stringify = JSON.stringify;
const reallyExit = process.reallyExit.bind(process);
const rootDir = process.cwd();
process.env.BAKEOFF_TESTS = tests.join('\n'); // for our runtime, which Jest loads
const babel = {
  babelrc: false, configFile: false,
  presets: [[require.resolve('@babel/preset-env'), { targets: { node: 'current' } }], require.resolve('@babel/preset-typescript')],
};
const config = {
  rootDir, testEnvironment: require.resolve('jest-environment-node'), testMatch: [path.join(rootDir, entry)],
  transform: { '\\.[cm]?[jt]sx?$': [require.resolve('babel-jest'), babel] }, haste: { enableSymlinks: false }, injectGlobals: false,
  modulePaths: [path.join(__dirname, 'node_modules')], moduleFileExtensions: ['ts', 'tsx', 'js', 'mjs', 'cjs', 'json', 'node'],
  cacheDirectory: path.join(process.env.TMPDIR, 'jest'), reporters: [], runtime: path.join(__dirname, 'runtime.cjs'),
};
const STATES = { __proto__: null, passed: 'passed', failed: 'failed' };
const firstLines = (text) => String(text).split(/\n\s+at /)[0];

async function main() {
  const { REPLACES_BUILTINS } = await import('./beyond.mjs');
  const replaced = tests.some((name) => REPLACES_BUILTINS.test(fs.readFileSync(name, 'utf8')));
  process.env.BAKEOFF_FROZEN = replaced ? '' : 'yes';
  process.exit = () => { throw new Error('process.exit was called'); };
  const options = { config: stringify(config), runInBand: true, ci: true, watchman: false, silent: true, colors: false, _: [], $0: '' };
  const { results } = await runCLI(options, [rootDir]);
  const report = { tests: [], error: '', changed: null };
  for (const file of results.testResults) {
    if (file.testExecError || !file.testResults.length) report.error += firstLines(file.testExecError?.message || file.failureMessage || '');
    for (const { ancestorTitles, title, status, failureMessages, duration } of file.testResults) {
      const message = failureMessages.map(firstLines).join('\n').replace(/^Error: /, '').slice(0, 4000);
      const name = [...ancestorTitles, title].join(' > ');
      report.tests.push({ name, state: STATES[status] ?? 'skipped', message, seconds: (duration ?? 0) / 1000 });
    }
  }
  if (!results.testResults.length) report.error ||= results.runExecError?.message ?? 'no test file was found';
  writeSync(1, `${proof}${stringify(report)}\n`);
  reallyExit(0);
}

main();
