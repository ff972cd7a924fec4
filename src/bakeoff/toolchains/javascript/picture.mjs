// A picture of one component in Chromium. Reads what to do first, prints the picture or why there is none last.
// Vite compiles the component and runs nothing of it; the page that runs it loads nothing but what was compiled.
import fs from 'node:fs';
import path from 'node:path';
import { chromium } from 'playwright';
import { build } from 'vite';
import { pluginsFor } from './plugins.mjs';

const { component, props, framework, chromium: executablePath, width, height, bytes } = JSON.parse(fs.readFileSync(0, 'utf8'));
const ADDRESS = 'http://component.invalid/';
const SECONDS = 15; // for the page to load, and again for the picture
const SETTLE = 300; // milliseconds in which a component may load and move
const LOOKS = 10; // at a page that shows nothing yet, one after each of these times
const ENTRY = 'bakeoff-picture.js';
const MOUNT = {
  svelte: ["import { mount } from 'svelte';", 'mount(Component, { target, props });'],
  react: ["import { createElement } from 'react'; import { createRoot } from 'react-dom/client';", 'createRoot(target).render(createElement(Component, props));'],
  vue: ["import { createApp } from 'vue';", 'createApp(Component, props).mount(target);'],
};

const SOURCE = `
${MOUNT[framework][0]}
import * as given from ${JSON.stringify(`./${component}`)};
${props ? `import props from ${JSON.stringify(`./${props}`)};` : 'const props = {};'}
const Component = given.default ?? Object.values(given).find((value) => typeof value === 'function');
if (!Component) throw new Error('it exports no component');
const target = document.getElementById('component');
${MOUNT[framework][1]}
`;

// What is on the page as a whole: a dialog may be outside of the element in which the component is.
function measure(most) {
  let bottom = 0, visible = false;
  for (const element of [...(document.body?.querySelectorAll('*') ?? [])].slice(0, 5000)) {
    const box = element.getBoundingClientRect();
    bottom = Math.max(bottom, box.bottom);
    const shows = element.childElementCount === 0 && (element.textContent.trim() || !['DIV', 'SPAN', 'P'].includes(element.tagName));
    visible ||= box.width * box.height > 0 && Boolean(shows || element.style.cssText);
  }
  return { visible, height: Math.min(most, bottom) };
}

async function compiled() {
  const entry = { name: 'bakeoff-entry', resolveId: (id) => (id.endsWith(ENTRY) ? path.resolve(ENTRY) : undefined), load: (id) => (id.endsWith(ENTRY) ? SOURCE : undefined) };
  const { output } = await build({
    root: process.cwd(),
    configFile: false,
    envFile: false,
    publicDir: false,
    logLevel: 'silent',
    cacheDir: path.join(process.env.TMPDIR, 'vite'),
    esbuild: { jsx: 'automatic' },
    css: { postcss: {} },
    plugins: [entry, ...(await pluginsFor(framework))],
    build: { write: false, minify: false, target: 'esnext', assetsInlineLimit: 1e6, cssCodeSplit: false, modulePreload: false, reportCompressedSize: false, rollupOptions: { input: ENTRY, output: { codeSplitting: false, inlineDynamicImports: true } } },
  });
  const style = output.filter((file) => file.fileName.endsWith('.css')).map((file) => file.source).join('\n');
  return { script: output.find((file) => file.type === 'chunk' && file.isEntry).code, style };
}

async function pictured({ script, style }) {
  const files = {
    '': ['text/html', '<!doctype html><html lang="en"><meta charset="utf-8"><title>component</title><link rel="icon" href="data:,"><link rel="stylesheet" href="style.css"><style>html { background: #fff; font-family: sans-serif } body { margin: 16px }</style><div id="component"></div><script type="module" src="script.js"></script></html>'],
    'style.css': ['text/css', style],
    'script.js': ['text/javascript', script],
  };
  const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--host-resolver-rules=MAP * ~NOTFOUND'];
  const browser = await chromium.launch({ executablePath, args });
  const page = await browser.newPage({ viewport: { width, height }, reducedMotion: 'reduce', colorScheme: 'light', serviceWorkers: 'block' });
  page.setDefaultTimeout(1000 * SECONDS);
  await page.route('**/*', (route) => {
    const found = files[route.request().url().slice(ADDRESS.length)];
    return route.request().url().startsWith(ADDRESS) && found ? route.fulfill({ contentType: `${found[0]}; charset=utf-8`, body: found[1] }) : route.abort();
  });
  const errors = [];
  page.on('pageerror', (error) => errors.push(error?.message ?? String(error)));
  page.on('dialog', (dialog) => dialog.dismiss().catch(() => {}));
  await page.goto(ADDRESS);
  const silence = new Promise((_, fail) => { setTimeout(() => fail(new Error('the page did not answer')), 1000 * SECONDS); });
  let found = { visible: false };
  for (let look = 0; look < LOOKS && !found.visible && errors.length === 0; look += 1) {
    await page.waitForTimeout(SETTLE);
    found = await Promise.race([page.evaluate(measure, height), silence]);
  }
  if (page.url() !== ADDRESS) return { problem: 'it went to another page' };
  if (!found.visible) return { problem: errors.length ? `it threw an error: ${errors[0]}` : 'it shows nothing when it is first rendered' };
  const clip = { x: 0, y: 0, width, height: Math.max(64, Math.min(height, Math.ceil(Number(found.height) || 0) + 16)) };
  const picture = await page.screenshot({ clip, animations: 'disabled' });
  return picture.length > bytes ? { problem: `its picture has more than ${bytes} bytes` } : { png: picture.toString('base64') };
}

function words(error) {
  const text = /Timeout|did not answer/.test(error.message) ? `it was not rendered within ${SECONDS} s` : error.message;
  return text.replaceAll(`${process.cwd()}/`, '').slice(0, 1000).toWellFormed();
}

let answer;
try {
  const made = await compiled().catch((error) => { throw new Error(`it does not compile: ${error.message}`); });
  answer = await pictured(made);
} catch (error) {
  answer = { problem: words(error) };
}
fs.writeSync(1, `\n${JSON.stringify(answer)}\n`);
process.exit(0);
