// Turns a suite's files into scripts that a worker can run. It reads what the candidate wrote and runs none of it.
import esbuild from 'esbuild';
import { compile, compileModule } from 'svelte/compiler';
import compiling from './compiling.cjs';

// What only Vite and a whole Vitest can do: module mocks, snapshots, and what a script cannot hold.
const BEYOND = [
  [/\bvi(?:test)?\s*\.\s*(?:mock|doMock|unmock|doUnmock|hoisted|importActual|importMock|resetModules|dynamicImportSettled)\b/, 'it mocks modules'],
  [/\bto(?:Match|ThrowErrorMatching)\w*Snapshot\b/, 'it uses snapshots'],
  [/\bimport\.meta\.glob\b/, 'it uses import.meta.glob'],
  [/\bimport\.meta\.(?:dirname|filename)\b|\b__(?:dirname|filename)\b/, 'it asks where it lies'],
  [/(?:from|import)\s*['"][^'"]*\?[^'"]*['"]|\bimport\s*\([^)]*\?/, 'it imports by a query'],
  [/@vitest-environment\b/, 'it chooses its environment'],
];
const TARGET = {
  format: 'cjs',
  target: 'node20',
  supported: { 'dynamic-import': false },
  define: {
    'import.meta.env': '__meta_env', 'import.meta.vitest': 'undefined', 'import.meta.url': '"file:///test.ts"',
  },
  logLevel: 'silent',
};
const scriptOf = compiling.keeping(async (name, source) => {
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
});

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

async function prepare({ files, entry }) {
  const modules = {};
  for (const [name, source] of Object.entries(files)) {
    const beyond = BEYOND.find(([pattern]) => pattern.test(source));
    if (beyond) return { whole: beyond[1] };
    try {
      modules[name] = await scriptOf(name, source);
    } catch (error) {
      return /Top-level await/.test(error.message) ? { whole: 'it awaits at its top level' } : { error: said(name, error) };
    }
  }
  return { modules, entry };
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

const SMALL = { 'test.ts': 'export const a: number = 1;', 'Component.svelte': '<script>let a = $state(1);</script><p>{a}</p>' };
compiling.serve((asked) => (asked.files ? prepare(asked) : bundle(asked)), () => prepare({ files: SMALL }));
