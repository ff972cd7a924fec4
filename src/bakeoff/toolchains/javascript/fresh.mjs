// A whole Vitest for one candidate: slow, and able to do everything. Reads what to do first, prints the result last.
import fs from 'node:fs';
import path from 'node:path';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { svelteTesting } from '@testing-library/svelte/vite';
import { startVitest } from 'vitest/node';
import { REPLACES_BUILTINS } from './beyond.mjs';

const { proof, test: testFile } = JSON.parse(fs.readFileSync(0, 'utf8'));
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

// A candidate has Svelte and the files beside it. Svelte's own plugin adds its style by a query.
const root = fs.realpathSync(process.cwd());
const isCandidates = (file) => file.startsWith(`${root}/`) && !file.startsWith(`${root}/node_modules/`) && file !== path.join(root, testFile) && fs.existsSync(file);
const doors = {
  name: 'doors',
  enforce: 'pre',
  resolveId(asked, importer) {
    const from = importer?.replace(/\?.*$/, '');
    if (!from || !isCandidates(from) || asked.startsWith(`${from}?svelte`) || asked === from) return null;
    if (/^(?:svelte(?:\/(?!compiler$|server$).*)?|esm-env)$/.test(asked)) return null;
    if (asked.startsWith(`${root}/node_modules/`) || asked.startsWith(`${here}/node_modules/`)) return null; // resolved before
    if (/^\.{0,2}\/[^?#]*$/.test(asked) && path.resolve(path.dirname(from), asked) !== path.join(root, testFile)) return null;
    throw new Error(`${path.relative(root, from)} cannot import ${asked}: a component has Svelte and the files beside it`);
  },
};

const frozen = !REPLACES_BUILTINS.test(fs.readFileSync(testFile, 'utf8'));
process.env.NO_COLOR = '1';
const vitest = await startVitest('test', [], {
  config: false, root: process.cwd(), watch: false, run: true, globals: true, environment: 'jsdom', pool: 'forks',
  include: [testFile.replace(/[[\]{}()*?!+@\\]/g, '\\$&')], reporters: [reporter],
  setupFiles: ['setup.mjs', ...(frozen ? ['freeze.mjs'] : [])].map((name) => path.join(here, name)),
  allowOnly: true, update: false,
}, {
  configFile: false, cacheDir: path.join(process.env.TMPDIR, 'vite'), server: { fs: { strict: false } },
  plugins: [doors, svelte({ configFile: false, compilerOptions: { runes: true } }), svelteTesting()],
  logLevel: 'silent',
});
fs.writeSync(1, `${proof}${JSON.stringify(report)}\n`);
await vitest?.close();
process.exit(0);
