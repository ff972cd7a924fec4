import { describe, expect, it } from 'vitest';
import { formatDuration, parseDuration } from './solution';

describe('parseDuration', () => {
  it('reads each unit', () => {
    expect(parseDuration('3d')).toBe(259200);
    expect(parseDuration('2h')).toBe(7200);
    expect(parseDuration('5m')).toBe(300);
    expect(parseDuration('45s')).toBe(45);
  });

  it('adds the parts, with and without spaces', () => {
    expect(parseDuration('1h 30m')).toBe(5400);
    expect(parseDuration('2d4h')).toBe(187200);
    expect(parseDuration('1d 1h 1m 1s')).toBe(90061);
  });

  it('reads units in either case, and ignores space around them', () => {
    expect(parseDuration('  1H 5S ')).toBe(3605);
  });

  it('takes a single number as seconds', () => {
    expect(parseDuration('90')).toBe(90);
    expect(parseDuration('0')).toBe(0);
  });

  it.each([
    ['', 'not a duration: ""'],
    ['   ', 'not a duration: "   "'],
    ['1x', 'not a duration: "1x"'],
    ['5m 1h', 'not a duration: "5m 1h"'],
    ['1h 1h', 'not a duration: "1h 1h"'],
    ['1.5h', 'not a duration: "1.5h"'],
    ['-5m', 'not a duration: "-5m"'],
    ['1h 30', 'not a duration: "1h 30"'],
  ])('refuses %j', (text, message) => {
    expect(() => parseDuration(text)).toThrow(new SyntaxError(message));
  });
});

describe('formatDuration', () => {
  it('gives the two largest units', () => {
    expect(formatDuration(3661)).toBe('1h 1m');
    expect(formatDuration(90061)).toBe('1d 1h');
    expect(formatDuration(59)).toBe('59s');
  });

  it('leaves out units that are zero', () => {
    expect(formatDuration(86405)).toBe('1d 5s');
    expect(formatDuration(7200)).toBe('2h');
  });

  it('gives as many units as it is asked for', () => {
    expect(formatDuration(90061, 4)).toBe('1d 1h 1m 1s');
    expect(formatDuration(90061, 1)).toBe('1d');
    expect(formatDuration(3661, 3)).toBe('1h 1m 1s');
  });

  it('cuts the rest off', () => {
    expect(formatDuration(7199)).toBe('1h 59m');
    expect(formatDuration(59.9)).toBe('59s');
  });

  it('knows zero and negative numbers', () => {
    expect(formatDuration(0)).toBe('0s');
    expect(formatDuration(-0.5)).toBe('0s');
    expect(formatDuration(-90)).toBe('-1m 30s');
  });

  it('refuses what is not finite', () => {
    expect(() => formatDuration(Number.NaN)).toThrow(RangeError);
    expect(() => formatDuration(Infinity)).toThrow(RangeError);
  });
});
