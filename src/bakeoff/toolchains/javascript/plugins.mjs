// What Vite needs to compile the files of a framework. React and plain TypeScript need nothing beside esbuild.
const PLUGINS = {
  async svelte() {
    const { svelte } = await import('@sveltejs/vite-plugin-svelte');
    const { svelteTesting } = await import('@testing-library/svelte/vite');
    return [svelte({ configFile: false, compilerOptions: { runes: true } }), svelteTesting()];
  },
  async vue() {
    const { default: vue } = await import('@vitejs/plugin-vue');
    return [vue()];
  },
};

export const pluginsFor = async (framework) => PLUGINS[framework]?.() ?? [];
