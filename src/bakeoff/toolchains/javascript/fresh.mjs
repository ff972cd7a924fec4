// A whole Vitest for one candidate: slow, and able to do everything. Reads the proof first, prints the result last.
import fs from 'node:fs';
import path from 'node:path';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { svelteTesting } from '@testing-library/svelte/vite';
import { startVitest } from 'vitest/node';

const proof = fs.readFileSync(0, 'utf8').trim();
const here = import.meta.dirname;
const message = (error) => (error.name && !['Error', 'AssertionError'].includes(error.name) ? `${error.name}: ` : '') + error.message;
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
          name: test.fullName, state: state === 'pending' ? 'skipped' : state, message: all(failures),
          seconds: (test.diagnostic()?.duration ?? 0) / 1000,
        });
      }
    }
    report.error = errors.join('\n');
  },
};

process.env.NO_COLOR = '1';
const vitest = await startVitest('test', [], {
  config: false, root: process.cwd(), watch: false, run: true, globals: true, environment: 'jsdom', pool: 'forks',
  include: ['test.{ts,js}', 'test.svelte.{ts,js}'], setupFiles: [path.join(here, 'setup.mjs')], reporters: [reporter],
  allowOnly: true, update: false,
}, {
  configFile: false, cacheDir: path.join(process.env.TMPDIR, 'vite'), server: { fs: { strict: false } },
  plugins: [svelte({ configFile: false, compilerOptions: { runes: true } }), svelteTesting()],
  logLevel: 'silent',
});
fs.writeSync(1, `${proof}${JSON.stringify(report)}\n`);
await vitest?.close();
process.exit(0);
