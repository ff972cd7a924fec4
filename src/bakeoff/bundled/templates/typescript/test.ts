import { describe, expect, it } from 'vitest';
import { initials } from './solution';

describe('initials', () => {
  it('takes the first letter of each word', () => {
    expect(initials('ada lovelace')).toBe('AL');
    expect(initials('Plato')).toBe('P');
  });

  it('takes the first and the last of many words', () => {
    expect(initials('Ada King Lovelace')).toBe('AL');
    expect(initials('Ada Augusta King Lovelace', 3)).toBe('AAL');
  });

  it('separates words by hyphens and any space', () => {
    expect(initials('  Anna-Lena   ')).toBe('AL');
  });

  it('has an answer for no name', () => {
    expect(initials('')).toBe('?');
    expect(initials(' ')).toBe('?');
  });
});
