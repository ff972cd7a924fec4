// A whole Vitest for one candidate: slow, and able to do everything. Reads what to do first, prints the result last.
import fs from 'node:fs';
import path from 'node:path';
import { startVitest } from 'vitest/node';
import { pluginsFor } from './plugins.mjs';
import { asPattern, reporter, tell } from './reporting.mjs';

const { entry, flags, framework } = JSON.parse(fs.readFileSync(0, 'utf8'));
const here = import.meta.dirname;
// The process of the tests, as a worker, reads and writes only what is its own and starts nothing.
const { TMPDIR } = process.env;
const permissions = [
  ...flags, ...[here, process.cwd(), TMPDIR].map((folder) => `--allow-fs-read=${folder}`),
  ...[process.cwd(), TMPDIR].map((folder) => `--allow-fs-write=${folder}`),
];
process.env.NO_COLOR = '1';
const vitest = await startVitest('test', [], {
  config: false, root: process.cwd(), watch: false, run: true, globals: true, environment: 'jsdom', pool: 'forks', execArgv: permissions,
  include: [asPattern(entry)], reporters: [reporter],
  setupFiles: [path.join(here, 'setup.mjs')],
  allowOnly: true, update: false,
}, {
  configFile: false, cacheDir: path.join(TMPDIR, 'vite'), server: { fs: { strict: false } },
  plugins: await pluginsFor(framework), esbuild: { jsx: 'automatic' },
  logLevel: 'silent',
});
await vitest?.close();
tell();
process.exit(0);
