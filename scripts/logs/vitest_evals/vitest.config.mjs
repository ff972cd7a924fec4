import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['*.eval.mjs'],
    reporters: ['vitest-evals/reporter', 'json'],
    outputFile: { json: `${process.env.SIDE}.json` },
  },
});
