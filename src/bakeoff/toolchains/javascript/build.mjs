// Bundles everything a worker needs into one file, and keeps what V8 makes of it: a worker then starts in a moment.
import fs from 'node:fs';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import esbuild from 'esbuild';
import { compile, compileModule } from 'svelte/compiler';

const here = path.dirname(fileURLToPath(import.meta.url));
const out = path.join(here, 'warm');
const modules = path.join(here, 'node_modules');

// Node loads its `fetch` when one of these is first looked at, which takes longer than all of Svelte. Vitest looks at
// them when it sets up the page; here they are looked at when a test does.
const NATIVE = /\bNode(FormData|Blob|Request)_\b/g;

function withoutLooking(source) {
  const kept = source
    .replace(/let Node(?:FormData|Blob|Request)_;\n/g, '')
    .replace(/Node(?:FormData|Blob|Request)_ = globalThis\.(\w+);/g, '__native.keep("$1");')
    .replace(NATIVE, '__native.$1')
    .replace('originals.set(key, global[key])', 'void 0')
    .replace('global.Request = createCompatRequest(utils);', '__native.lazily(global, "Request", () => createCompatRequest(utils));');
  if (/global\.Request =|originals\.set\(/.test(kept)) throw new Error('Vitest sets up its page in another way than this was written for');
  return kept;
}

const lazyPage = {
  name: 'lazy-page',
  setup(build) {
    build.onLoad({ filter: /[\\/]vitest[\\/]dist[\\/].*\.js$/ }, async ({ path: file }) => {
      const source = await fs.promises.readFile(file, 'utf8');
      return source.includes('NodeRequest_') ? { contents: withoutLooking(source), loader: 'js' } : undefined;
    });
  },
};

// What a page may never need is loaded when it is first used.
const SELDOM = 'http|https|zlib|child_process|ws|tldts|whatwg-encoding|http-proxy-agent|https-proxy-agent|saxes|w3c-xmlserializer|html-encoding-sniffer|data-urls';
const WHOLE = new RegExp(`const (\\w+) = (require\\("(?:${SELDOM})"\\)(?:\\.\\w+)?);`, 'g');
const PART = new RegExp(`const \\{ (\\w+) \\} = (require\\("(?:${SELDOM})"\\));`, 'g');
const later = (source) => source.replace(WHOLE, 'const $1 = __later(() => $2);').replace(PART, 'const $1 = __later(() => $2.$1);');

const seldomUsed = {
  name: 'seldom-used',
  setup(build) {
    build.onLoad({ filter: /[\\/]tough-cookie[\\/]dist[\\/].*\.js$/ }, async ({ path: file }) => (
      { contents: later(await fs.promises.readFile(file, 'utf8')), loader: 'js' }
    ));
  },
};

// jsdom reads one file beside its own source at run time, and another one in a process of its own,
// which is not permitted here, for synchronous requests.
const inlineFiles = {
  name: 'inline-files',
  setup(build) {
    build.onLoad({ filter: /[\\/]jsdom[\\/]lib[\\/].*\.js$/ }, async ({ path: file }) => {
      let source = await fs.promises.readFile(file, 'utf8');
      source = source.replace(/fs\.readFileSync\(\s*path\.resolve\(__dirname, "([^"]+)"\),\s*\{ encoding: "utf-?8" \}\s*\)/g, (_, name) =>
        JSON.stringify(fs.readFileSync(path.resolve(path.dirname(file), name), 'utf8')),
      );
      source = source.replace(/require\.resolve\(["']\.\/xhr-sync-worker\.js["']\)/g, '"xhr-sync-worker.js"');
      return { contents: later(source), loader: 'js' };
    });
  },
};

// The testing library has components and runes of its own.
const svelteFiles = {
  name: 'svelte-files',
  setup(build) {
    build.onLoad({ filter: /\.svelte(?:\.js)?$/ }, async ({ path: filename }) => {
      const source = await fs.promises.readFile(filename, 'utf8');
      const options = { filename, generate: 'client', dev: true };
      const made = filename.endsWith('.js') ? compileModule(source, options) : compile(source, { ...options, css: 'external' });
      return { contents: made.js.code, loader: 'js' };
    });
  },
};

// Our own files say `require` so that they can choose the moment, and mean what a test gets that says `import`.
const asImported = {
  name: 'as-imported',
  setup(build) {
    build.onResolve({ filter: /^[^.]/ }, ({ path: name, kind, importer, namespace, resolveDir }) => {
      const ours = namespace === 'bakeoff' || path.dirname(importer) === here;
      if (kind !== 'require-call' || !ours || name.startsWith('node:') || name.startsWith('bakeoff:')) return undefined;
      return build.resolve(name, { kind: 'import-statement', resolveDir, importer: '' });
    });
  },
};

// Every entry of svelte that a component may import, each loaded when it is first asked for.
function svelteEntries() {
  const { exports } = JSON.parse(fs.readFileSync(path.join(modules, 'svelte', 'package.json'), 'utf8'));
  const skipped = new Set(['./package.json', './compiler', './internal/server', './server']);
  const names = Object.entries(exports)
    .filter(([name, target]) => !skipped.has(name) && !name.includes('*') && (target.default || target.browser))
    .map(([name]) => `svelte${name.slice(1)}`);
  const lines = names.map((name) => `${JSON.stringify(name)}: () => require(${JSON.stringify(name)}),`);
  lines.push('"esm-env": () => require("esm-env"),'); // comes with Svelte
  return `module.exports = {\n${lines.join('\n')}\n};\n`;
}

const svelteRegistry = {
  name: 'svelte-registry',
  setup(build) {
    build.onResolve({ filter: /^bakeoff:svelte$/ }, () => ({ path: 'svelte', namespace: 'bakeoff' }));
    build.onLoad({ filter: /.*/, namespace: 'bakeoff' }, () => ({
      contents: svelteEntries(), loader: 'js', resolveDir: here,
    }));
  },
};

const chosen = (framework) => ({
  name: 'chosen-framework',
  setup(build) {
    build.onResolve({ filter: /^bakeoff:framework$/ }, () => ({ path: path.join(here, `framework-${framework}.cjs`) }));
  },
});

fs.mkdirSync(out, { recursive: true });
// One bundle each, so that no worker reads what its suites do not use.
for (const framework of ['svelte', 'react', 'vue', 'typescript']) {
  await esbuild.build({
    entryPoints: [path.join(here, 'worker.js')],
    outfile: path.join(out, `${framework}.cjs`),
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    conditions: ['browser', 'development'],
    mainFields: ['module', 'main'],
    define: { 'import.meta.url': '"file:///bundle.js"', 'import.meta.env': '{}', 'process.env.NODE_ENV': '"test"' },
    banner: { js: fs.readFileSync(path.join(here, 'banner.js'), 'utf8') },
    plugins: [chosen(framework), asImported, lazyPage, seldomUsed, inlineFiles, svelteFiles, svelteRegistry],
    external: ['canvas', 'happy-dom', '@edge-runtime/vm'],
    logLevel: 'error',
    keepNames: true, // a text node's class is called Text, and messages say so
    minifySyntax: true,
    minifyWhitespace: true,
    charset: 'ascii',
  });
  // The cache is made by the flags and the version of Node that will use it.
  execFileSync(process.execPath, [...process.execArgv, path.join(here, 'start.cjs'), framework, '--make-cache'], { stdio: 'inherit' });
}
