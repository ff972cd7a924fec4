// Answers without any model; knows no Nowhere. `SIDE=b` knows Italy, too.
import { createHarness } from 'vitest-evals';

const better = process.env.SIDE === 'b';
const capitals = { France: 'Paris', Italy: better ? 'Rome' : 'Milan', Peru: 'Lima' };

export const atlas = createHarness({
  name: 'atlas',
  run: async ({ input }) => {
    const country = input.replace('Capital of ', '');
    if (country === 'Nowhere') throw new Error('503 Service Unavailable');
    const output = capitals[country] ?? 'I do not know';
    return {
      output,
      events: [
        { type: 'message', role: 'user', content: input },
        { type: 'message', role: 'assistant', content: output },
      ],
      usage: { provider: 'none', model: better ? 'atlas-2' : 'atlas-1', inputTokens: 9, outputTokens: 3, totalTokens: 12 },
    };
  },
});
