import { describe, expect, test, xtest } from '@jest/globals';
import { distance, isLoop, signs } from './trail-signs';

describe('Trail signs', () => {
  test('signs of a straight walk', () => {
    expect(signs('NNN')).toEqual(['3N']);
  });

  xtest('signs of turns', () => {
    expect(signs('NNESSS')).toEqual(['2N', '1E', '3S']);
  });

  xtest('signs of no walk', () => {
    expect(signs('')).toEqual([]);
  });

  xtest('distance ignores detours', () => {
    expect(distance('NESW')).toBe(0);
  });

  xtest('distance around a corner', () => {
    expect(distance('NNNEE')).toBe(5);
  });

  xtest('distance to the west', () => {
    expect(distance('WWWS')).toBe(4);
  });

  xtest('loops', () => {
    expect(isLoop('NEESWW')).toEqual(true);
  });

  xtest('no loop', () => {
    expect(isLoop('NEES')).toEqual(false);
  });
});
