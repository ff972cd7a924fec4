import { describe, expect, test, xtest } from '@jest/globals';
import { fee, receipt } from './parking-fee';

describe('Parking fee', () => {
  test('nothing at all', () => {
    expect(fee(0)).toEqual(0);
  });

  xtest('the last free minute', () => {
    expect(fee(10)).toEqual(0);
  });

  xtest('the first minute that costs', () => {
    expect(fee(11)).toEqual(120);
  });

  xtest('one minute into the second half hour', () => {
    expect(fee(31)).toEqual(240);
  });

  xtest('the most for a day', () => {
    const expected = 1500;
    expect(fee(900)).toEqual(expected);
  });

  xtest('a day and an hour', () => {
    expect(fee(1500)).toBe(1740);
  });

  xtest('before it began', () => {
    expect(() => fee(-1)).toThrow(new RangeError('a stay cannot be negative'));
  });

  xtest('receipt of an hour', () => {
    expect(receipt(65)).toEqual('1h05m: 3.60');
  });

  xtest('receipt of a free stay', () => {
    expect(receipt(7)).toEqual('0h07m: 0.00');
  });
});
