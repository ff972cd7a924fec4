// Turns a suite's files into scripts that a worker can run. It reads what the candidate wrote and runs none of it.
import esbuild from 'esbuild';
import compiling from './compiling.cjs';

const svelte = once(() => import('svelte/compiler'));
const vue = once(() => import('vue/compiler-sfc'));

// What only Vite and a whole Vitest can do: module mocks, snapshots, and what a script cannot hold.
const BEYOND = [
  [/\bvi(?:test)?\s*\.\s*(?:mock|doMock|unmock|doUnmock|hoisted|importActual|importMock|resetModules|dynamicImportSettled)\b/, 'it mocks modules'],
  [/\bto(?:Match|ThrowErrorMatching)\w*Snapshot\b/, 'it uses snapshots'],
  [/\bimport\.meta\.glob\b/, 'it uses import.meta.glob'],
  [/\bimport\.meta\.(?:dirname|filename)\b|\b__(?:dirname|filename)\b/, 'it asks where it lies'],
  [/(?:from|import)\s*['"][^'"]*\?[^'"]*['"]|\bimport\s*\([^)]*\?/, 'it imports by a query'],
  [/@vitest-environment\b/, 'it chooses its environment'],
  [/<style\b[^>]*\smodule\b/, 'it has a CSS module'],
];
const TARGET = {
  format: 'cjs',
  jsx: 'automatic',
  target: 'node20',
  supported: { 'dynamic-import': false },
  define: {
    'import.meta.env': '__meta_env', 'import.meta.vitest': 'undefined', 'import.meta.url': '"file:///test.ts"',
  },
  logLevel: 'silent',
};
const scriptOf = compiling.keeping(async (name, source) => {
  if (name.endsWith('.svelte')) {
    const { compile } = await svelte();
    const options = { filename: name, rootDir: '/', generate: 'client', dev: true, runes: true, css: 'external' };
    return toScript(name, compile(source, options).js.code, 'js');
  }
  if (name.endsWith('.vue')) return toScript(name, await vueModule(name, source), 'ts');
  if (/\.(?:css|scss|sass|less)$/.test(name)) return '';
  if (name.endsWith('.json')) return `module.exports = { __esModule: true, default: ${source} };`;
  if (/\.svelte(?:\.[^.]+)*\.(?:js|ts)$/.test(name)) {
    const { compileModule } = await svelte();
    const plain = await esbuild.transform(source, { loader: 'ts', target: 'esnext', sourcefile: name, logLevel: 'silent', tsconfigRaw: TS });
    return toScript(name, compileModule(plain.code, { filename: name, rootDir: '/', generate: 'client', dev: true }).js.code, 'js');
  }
  if (/\.(?:[cm]?[jt]s)$/.test(name)) return toScript(name, source, 'ts');
  if (/\.[jt]sx$/.test(name)) return toScript(name, source, 'tsx');
  return `module.exports = { __esModule: true, default: ${JSON.stringify(`/${name}`)} };`;
});

// As Vite does: what is imported for its type alone is not imported, whether or not it says so.
const TS = { compilerOptions: { verbatimModuleSyntax: false, target: 'esnext', useDefineForClassFields: true } };

// Script and template stay apart, as Vite has them outside of production: a test may look at what the script holds.
async function vueModule(name, source) {
  const { compileScript, compileTemplate, parse } = await vue();
  const { descriptor, errors } = parse(source, { filename: name, sourceMap: false });
  if (errors.length) throw errors[0];
  if (!descriptor.template && !descriptor.script && !descriptor.scriptSetup) throw new Error('it has neither a template nor a script');
  const id = 'candidate';
  const scoped = descriptor.styles.some((style) => style.scoped);
  const script = descriptor.script || descriptor.scriptSetup ? compileScript(descriptor, { id, genDefaultAs: '__component' }) : null;
  const parts = [script?.content ?? 'const __component = {};', `__component.__file = ${JSON.stringify(name)};`];
  if (scoped) parts.push(`__component.__scopeId = "data-v-${id}";`);
  if (descriptor.template) {
    const made = compileTemplate({
      id, filename: name, source: descriptor.template.content, scoped, slotted: descriptor.slotted, preprocessLang: descriptor.template.lang,
      compilerOptions: { bindingMetadata: script?.bindings, expressionPlugins: ['typescript'] },
    });
    if (made.errors.length) throw made.errors[0];
    parts.push(made.code, '__component.render = render;');
  }
  return [...parts, 'export default __component;'].join('\n');
}

async function toScript(name, source, loader) {
  return (await esbuild.transform(source, { ...TARGET, loader, sourcefile: name, tsconfigRaw: TS })).code;
}

function said(name, error) {
  if (error.errors?.length) {
    return error.errors.map(({ text, location }) => `${name}${location ? `:${location.line}:${location.column + 1}` : ''} ${text}`).join('\n');
  }
  const start = error.start ?? (error.loc?.start && { line: error.loc.start.line, column: error.loc.start.column - 1 });
  const at = start ? `:${start.line}:${start.column + 1}` : '';
  return `${name}${at} ${String(error.message).replace(/\nhttps:\/\/svelte\.dev\S*$/, '')}`;
}

const LEFT = [
  [/Top-level await/, 'it awaits at its top level'],
  [/Failed to resolve (?:import|extends)|No fs option provided/, 'it imports types of its properties'],
];

async function prepare({ files, entry }) {
  const modules = {};
  for (const [name, source] of Object.entries(files)) {
    const beyond = BEYOND.find(([pattern]) => pattern.test(source));
    if (beyond) return { whole: beyond[1] };
    try {
      modules[name] = await scriptOf(name, source);
    } catch (error) {
      const left = LEFT.find(([pattern]) => pattern.test(error.message));
      return left ? { whole: left[1] } : { error: said(name, error) };
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

function once(load) {
  let loaded;
  return () => (loaded ??= load());
}

const SMALL = {
  svelte: { 'Component.svelte': '<script>let a = $state(1);</script><p>{a}</p>' },
  vue: { 'Component.vue': '<script setup lang="ts">const a: number = 1;</script><template><p>{{ a }}</p></template>' },
  react: { 'Component.tsx': 'export default () => <p>1</p>;' },
};
const small = { 'test.ts': 'export const a: number = 1;', ...SMALL[process.argv[2]] };
compiling.serve((asked) => (asked.files ? prepare(asked) : bundle(asked)), () => prepare({ files: small }));
