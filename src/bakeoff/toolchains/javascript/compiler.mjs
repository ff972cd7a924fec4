// Turns a suite's files into scripts that a worker can run. It reads what the candidate wrote and runs none of it.
import net from 'node:net';
import path from 'node:path';
import readline from 'node:readline';
import * as acorn from 'acorn';
import esbuild from 'esbuild';
import { compile, compileModule } from 'svelte/compiler';
import { beyondUs } from './beyond.mjs';

const MOST_KEPT = 500;
const TARGET = {
  format: 'cjs',
  target: 'node20',
  supported: { 'dynamic-import': false },
  define: {
    'import.meta.env': '__meta_env', 'import.meta.vitest': 'undefined', 'import.meta.url': '"file:///test.ts"',
  },
  logLevel: 'silent',
};
const kept = new Map();

async function scriptOf(name, source) {
  const key = `${name}\n${source}`;
  let made = kept.get(key);
  if (!made) {
    made = await compiled(name, source);
    kept.set(key, made);
    if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
  }
  return made;
}

async function compiled(name, source) {
  if (name.endsWith('.svelte')) {
    const options = { filename: name, rootDir: '/', generate: 'client', dev: true, runes: true, css: 'external' };
    return toScript(name, compile(source, options).js.code, 'js');
  }
  if (/\.(?:css|scss|sass|less)$/.test(name)) return '';
  if (name.endsWith('.json')) return `module.exports = { __esModule: true, default: ${source} };`;
  if (/\.svelte(?:\.[^.]+)*\.(?:js|ts)$/.test(name)) {
    const plain = await esbuild.transform(source, { loader: 'ts', target: 'esnext', sourcefile: name, logLevel: 'silent', tsconfigRaw: TS });
    return toScript(name, compileModule(plain.code, { filename: name, rootDir: '/', generate: 'client', dev: true }).js.code, 'js');
  }
  if (/\.(?:[cm]?[jt]s)$/.test(name)) return toScript(name, source, 'ts');
  return `module.exports = { __esModule: true, default: ${JSON.stringify(`/${name}`)} };`;
}

// As Vite does: what is imported for its type alone is not imported, whether or not it says so.
const TS = { compilerOptions: { verbatimModuleSyntax: false, target: 'esnext', useDefineForClassFields: true } };

async function toScript(name, source, loader) {
  return (await esbuild.transform(source, { ...TARGET, loader, sourcefile: name, tsconfigRaw: TS })).code;
}

function said(name, error) {
  if (error.errors?.length) {
    return error.errors.map(({ text, location }) => `${name}${location ? `:${location.line}:${location.column + 1}` : ''} ${text}`).join('\n');
  }
  const at = error.start ? `:${error.start.line}:${error.start.column + 1}` : '';
  return `${name}${at} ${String(error.message).replace(/\nhttps:\/\/svelte\.dev\S*$/, '')}`;
}

const ENTRY = /^test\.(?:svelte\.)?[jt]s$/;

// The test alone decides how it is run. What else is there is the candidate's.
async function prepare({ files, test }) {
  const entry = test ?? Object.keys(files).find((name) => ENTRY.test(name));
  if (entry === undefined) return { error: 'there is no test.ts or test.svelte.ts' };
  if (!Object.hasOwn(files, entry)) return { error: `there is no ${entry}` };
  const modules = {};
  for (const [name, source] of Object.entries(files)) {
    if (name === entry) continue;
    try {
      modules[name] = await scriptOf(name, source);
    } catch (error) {
      return { error: said(name, error).replace(/Top-level await.*/, 'top-level await is not supported in a component here') };
    }
  }
  const why = beyondUs(files[entry]);
  if (why) return forFresh(why, modules, entry);
  try {
    modules[entry] = await scriptOf(entry, files[entry]);
  } catch (error) {
    return /Top-level await/.test(error.message) ? forFresh('it awaits at its top level', modules, entry) : { error: said(entry, error) };
  }
  return { modules, entry };
}

// In a whole Vitest a candidate could import what it likes; so what it imports is looked at before.
function forFresh(why, modules, entry) {
  for (const [name, script] of Object.entries(modules)) {
    for (const asked of requiredBy(script)) {
      if (asked === null) return { error: `${name} imports by a name that is not written out` };
      if (!mayImport(asked, name, entry)) return { error: `${name} cannot import ${asked}: a component has Svelte and the files beside it` };
    }
  }
  return { fresh: why, entry };
}

function mayImport(asked, name, entry) {
  if (/^(?:svelte(?:\/(?!compiler$|server$|internal\/server).*)?|esm-env)$/.test(asked)) return true;
  if (!/^\.{1,2}\/[^?#]*$/.test(asked)) return false;
  const target = path.posix.normalize(path.posix.join(path.posix.dirname(name), asked));
  return !target.startsWith('..') && target.replace(/\.[jt]s$/, '') !== entry.replace(/\.[jt]s$/, '');
}

// Every `import` has become a `require` by now; a candidate has none of its own.
function requiredBy(script) {
  const found = [];
  const visit = (node) => {
    if (node.type === 'CallExpression' && node.callee.type === 'Identifier' && node.callee.name === 'require') found.push(literal(node.arguments[0]));
    if (node.type === 'ImportExpression') found.push(literal(node.source));
    for (const value of Object.values(node)) {
      for (const child of Array.isArray(value) ? value : [value]) if (typeof child?.type === 'string') visit(child);
    }
  };
  visit(acorn.parse(script, { ecmaVersion: 'latest', allowReturnOutsideFunction: true }));
  return found;
}

function literal(node) {
  return typeof node?.value === 'string' ? node.value : null;
}

// A validator may import for its value what is installed here, so it is bundled; its types are gone before that.
async function bundle({ source }) {
  try {
    const made = await esbuild.build({
      ...TARGET, bundle: true, write: false, platform: 'node', tsconfigRaw: TS,
      stdin: { contents: source, loader: 'ts', sourcefile: 'validator.ts', resolveDir: import.meta.dirname },
    });
    return { modules: { 'validator.ts': made.outputFiles[0].text }, entry: 'validator.ts' };
  } catch (error) {
    return { error: said('validator.ts', error) };
  }
}

const socket = net.connect(process.argv[2], async () => {
  await prepare({ files: { 'test.ts': 'export const a: number = 1;', 'Component.svelte': '<script>let a = $state(1);</script><p>{a}</p>' } });
  socket.write('{"ready":true}\n');
});
socket.on('close', () => process.exit(0));
readline.createInterface({ input: socket }).on('line', async (line) => {
  const asked = JSON.parse(line);
  const answer = await (asked.kind === 'bundle' ? bundle(asked) : prepare(asked));
  socket.write(`${JSON.stringify(answer)}\n`);
});
