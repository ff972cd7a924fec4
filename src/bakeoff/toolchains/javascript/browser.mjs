// A whole Vitest for one candidate, in a real browser. Reads what to do first, prints the result last.
import fs from 'node:fs';
import path from 'node:path';
import { startVitest } from 'vitest/node';
import { reporter, tell } from './reporting.mjs';

const { entry, framework, chromium } = JSON.parse(fs.readFileSync(0, 'utf8'));
// Vitest makes a second Vite for the browser, which knows nothing but the configuration file and the environment.
Object.assign(process.env, { NO_COLOR: '1', BAKEOFF_ENTRY: entry, BAKEOFF_FRAMEWORK: framework, BAKEOFF_CHROMIUM: chromium });
const config = path.join(import.meta.dirname, 'browser.config.mjs');
const vitest = await startVitest('test', [], { config, watch: false, run: true, update: false, reporters: [reporter] }, { configLoader: 'native' });
await vitest?.close();
tell();
process.exit(0);
