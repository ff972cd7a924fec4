// A whole Vitest for one candidate: slow, and able to do everything. Reads what to do first, prints the result last.
import fs from 'node:fs';
import path from 'node:path';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { svelteTesting } from '@testing-library/svelte/vite';
import { startVitest } from 'vitest/node';

const { entry, flags } = JSON.parse(fs.readFileSync(0, 'utf8'));
const here = import.meta.dirname;
const MOST_MESSAGE = 4000;

function message(error) {
  const text = (error.name && !['Error', 'AssertionError'].includes(error.name) ? `${error.name}: ` : '') + error.message;
  return (text.length > MOST_MESSAGE ? `${text.slice(0, MOST_MESSAGE)}…` : text).toWellFormed();
}

const all = (errors) => (errors ?? []).map(message).join('\n');

const report = { tests: [], error: '' };
const reporter = {
  onTestRunEnd(modules, unhandled) {
    const errors = unhandled.map((error) => `${error.type ?? 'Unhandled Error'}: ${message(error)}`);
    for (const module of modules) {
      errors.unshift(...module.errors().map(message));
      for (const suite of module.children.allSuites()) errors.push(...suite.errors().map(message));
      for (const test of module.children.allTests()) {
        const { state, errors: failures } = test.result();
        report.tests.push({
          name: test.fullName.toWellFormed(), state: state === 'pending' ? 'skipped' : state, message: all(failures),
          seconds: (test.diagnostic()?.duration ?? 0) / 1000,
        });
      }
    }
    report.error = errors.join('\n');
  },
};

// The process of the tests, as a worker, reads and writes only what is its own and starts nothing.
const { TMPDIR } = process.env;
const permissions = [
  ...flags, ...[here, process.cwd(), TMPDIR].map((folder) => `--allow-fs-read=${folder}`),
  ...[process.cwd(), TMPDIR].map((folder) => `--allow-fs-write=${folder}`),
];
process.env.NO_COLOR = '1';
const vitest = await startVitest('test', [], {
  config: false, root: process.cwd(), watch: false, run: true, globals: true, environment: 'jsdom', pool: 'forks', execArgv: permissions,
  include: [entry.replace(/[[\]{}()*?!+@\\]/g, '\\$&')], reporters: [reporter],
  setupFiles: [path.join(here, 'setup.mjs')],
  allowOnly: true, update: false,
}, {
  configFile: false, cacheDir: path.join(TMPDIR, 'vite'), server: { fs: { strict: false } },
  plugins: [svelte({ configFile: false, compilerOptions: { runes: true } }), svelteTesting()],
  logLevel: 'silent',
});
await vitest?.close();
fs.writeSync(1, `\n${JSON.stringify(report)}\n`);
process.exit(0);
