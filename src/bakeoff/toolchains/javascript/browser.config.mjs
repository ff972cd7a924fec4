// Vitest in Chromium. The browser runs without its own sandbox: everything here is inside of ours.
import path from 'node:path';
import { playwright } from '@vitest/browser-playwright';
import { pluginsFor } from './plugins.mjs';
import { asPattern } from './reporting.mjs';

const { BAKEOFF_ENTRY: entry, BAKEOFF_FRAMEWORK: framework, BAKEOFF_CHROMIUM: executablePath, TMPDIR } = process.env;
const root = process.cwd();

// Vite makes these ready before the page is opened; one that it met later would load the page again.
const TESTING = ['@testing-library/dom', '@testing-library/jest-dom/vitest', '@testing-library/user-event'];
const USED = {
  svelte: ['@testing-library/svelte > @testing-library/dom'],
  react: ['react', 'react-dom', 'react-dom/client', 'react/jsx-runtime', 'react/jsx-dev-runtime', '@testing-library/react'],
  vue: ['vue', '@vue/test-utils', '@testing-library/vue'],
  typescript: [],
};

// A setup file outside of the root would not be served, so what it does is done by the test itself.
const matchers = {
  name: 'bakeoff-matchers',
  enforce: 'pre',
  transform: (code, id) => (id.split('?')[0] === path.join(root, entry) ? `import '@testing-library/jest-dom/vitest';${code}` : undefined),
};

export default {
  root,
  cacheDir: path.join(TMPDIR, 'vite'),
  logLevel: 'silent',
  esbuild: { jsx: 'automatic' },
  server: { fs: { strict: false }, watch: null }, // graded programs get no notifications about files
  plugins: [matchers, ...(await pluginsFor(framework))],
  optimizeDeps: { include: [...TESTING, ...USED[framework]] },
  test: {
    globals: true,
    include: [asPattern(entry)],
    allowOnly: true,
    browser: {
      enabled: true,
      headless: true,
      ui: false,
      screenshotFailures: false,
      instances: [{ browser: 'chromium', viewport: { width: 1024, height: 768 } }],
      api: { allowWrite: false, allowExec: false },
      provider: playwright({ launchOptions: { executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'] } }),
    },
  },
};
