// A whole Jest for one candidate: slow, and able to do everything. Reads what to do first, prints the result last.
//
// It starts itself once more in a process that, as a worker, reads and writes only what is its own and starts nothing.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { spawnSync } = require('node:child_process');

const { writeSync } = fs;
const stringify = JSON.stringify;
const wellFormed = Function.prototype.call.bind(String.prototype.toWellFormed);
const rootDir = process.cwd();
const { TMPDIR } = process.env;
const STATES = { passed: 'passed', failed: 'failed' };
const firstLines = (text) => String(text).split(/\n\s+at /)[0];

// Where Jest looks for packages, up to the root.
function lookedAt(folder) {
  const above = path.dirname(folder);
  return above === folder ? [] : [path.join(above, 'node_modules'), path.join(above, 'package.json'), ...lookedAt(above)];
}

function start({ entry, flags }) {
  const read = [__dirname, rootDir, TMPDIR, ...lookedAt(rootDir)].map((folder) => `--allow-fs-read=${folder}`);
  const write = [rootDir, TMPDIR].map((folder) => `--allow-fs-write=${folder}`);
  const { status, signal } = spawnSync(process.execPath, [...flags, ...read, ...write, __filename, entry], { stdio: ['ignore', 'inherit', 'inherit'] });
  process.exit(signal ? 1 : status);
}

async function runJest(entry) {
  const babel = {
    babelrc: false, configFile: false,
    presets: [[require.resolve('@babel/preset-env'), { targets: { node: 'current' } }], require.resolve('@babel/preset-typescript')],
  };
  const config = {
    rootDir, testEnvironment: require.resolve('jest-environment-node'), testMatch: [path.join(rootDir, entry)],
    transform: { '\\.[cm]?[jt]sx?$': [require.resolve('babel-jest'), babel] }, haste: { enableSymlinks: false, forceNodeFilesystemAPI: true },
    modulePaths: [path.join(__dirname, 'node_modules')], moduleFileExtensions: ['ts', 'tsx', 'js', 'mjs', 'cjs', 'json', 'node'],
    cacheDirectory: path.join(TMPDIR, 'jest'), reporters: [],
  };
  const reallyExit = process.reallyExit.bind(process);
  process.exit = () => { throw new Error('process.exit was called'); };
  const options = { config: stringify(config), runInBand: true, ci: true, watchman: false, silent: true, colors: false, _: [], $0: '' };
  const { results } = await require('jest').runCLI(options, [rootDir]);
  const report = { tests: [], error: '' };
  for (const file of results.testResults) {
    if (file.testExecError || !file.testResults.length) report.error += firstLines(file.testExecError?.message || file.failureMessage || '');
    for (const { ancestorTitles, title, status, failureMessages, duration } of file.testResults) {
      const message = failureMessages.map(firstLines).join('\n').replace(/^Error: /, '').slice(0, 4000);
      const name = [...ancestorTitles, title].join(' > ');
      report.tests.push({ name: wellFormed(name), state: STATES[status] ?? 'skipped', message: wellFormed(message), seconds: (duration ?? 0) / 1000 });
    }
  }
  if (!results.testResults.length) report.error ||= results.runExecError?.message ?? 'no test file was found';
  writeSync(1, `\n${stringify(report)}\n`);
  reallyExit(0);
}

if (process.argv[2]) runJest(process.argv[2]);
else start(JSON.parse(fs.readFileSync(0, 'utf8')));
