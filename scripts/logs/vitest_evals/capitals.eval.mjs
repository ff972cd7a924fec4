// Makes tests/logs/logs/vitest-evals/a.json and b.json, with vitest-evals 0.16.1, vitest 4.1.11 and no network:
//
//   for SIDE in a b; do SIDE=$SIDE npx vitest run; done
//
// The reports are as written, without the paths of files and without traces.
import { expect } from 'vitest';
import { createJudge, describeEval } from 'vitest-evals';
import { atlas } from './harness.mjs';

const Right = createJudge('Right', async ({ output }) => ({
  score: ['Paris', 'Rome', 'Lima'].includes(output) ? 1 : 0.25,
  metadata: { rationale: `it is ${output}` },
}));
const Short = createJudge('Short', async ({ output }) => ({ score: output.length <= 6 ? 1 : 0.5 }));
const Breaks = createJudge('Breaks', async () => {
  throw new TypeError('the judge has no key');
});

describeEval('capitals', { harness: atlas, judges: [Right, Short], judgeThreshold: 0.7 }, (it) => {
  for (const country of ['France', 'Italy', 'Peru', 'Atlantis', 'Nowhere']) {
    it(`knows ${country}`, async ({ run }) => {
      await run(`Capital of ${country}`);
    });
  }
  it.skip('knows Chile', async ({ run }) => {
    await run('Capital of Chile');
  });
});

describeEval('other ways to fail', { harness: atlas }, (it) => {
  it('has another answer', async ({ run }) => {
    expect((await run('Capital of France')).output).toBe('Lutetia');
  });
  it('is judged in the test', async ({ run }) => {
    await expect(await run('Capital of Italy')).toSatisfyJudge(Right);
  });
  it('has a broken judge', async ({ run }) => {
    await expect(await run('Capital of France')).toSatisfyJudge(Breaks);
  });
});
