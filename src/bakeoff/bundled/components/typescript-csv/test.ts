import { describe, expect, it } from 'vitest';
import { formatCsv, parseCsv } from './solution';

describe('parseCsv', () => {
  it('reads rows and fields', () => {
    expect(parseCsv('name,age\nAda,36\nAlan,41')).toEqual([['name', 'age'], ['Ada', '36'], ['Alan', '41']]);
  });

  it('reads both kinds of line breaks, and none at the end', () => {
    expect(parseCsv('a,b\r\nc,d\r\n')).toEqual([['a', 'b'], ['c', 'd']]);
    expect(parseCsv('a\n')).toEqual([['a']]);
  });

  it('knows empty texts, lines and fields', () => {
    expect(parseCsv('')).toEqual([]);
    expect(parseCsv('a\n\nb')).toEqual([['a'], [''], ['b']]);
    expect(parseCsv('a,,b\n,x,')).toEqual([['a', '', 'b'], ['', 'x', '']]);
    expect(parseCsv('a,\nb')).toEqual([['a', ''], ['b']]);
  });

  it('keeps spaces', () => {
    expect(parseCsv(' a , b')).toEqual([[' a ', ' b']]);
  });

  it('reads quoted fields', () => {
    expect(parseCsv('"a,b",c\n"say ""hi""","",d')).toEqual([['a,b', 'c'], ['say "hi"', '', 'd']]);
    expect(parseCsv('"one\ntwo",x\r\n"three\r\nfour",y')).toEqual([['one\ntwo', 'x'], ['three\r\nfour', 'y']]);
  });

  it('takes another separator', () => {
    expect(parseCsv('a;b,c;"d;e"', ';')).toEqual([['a', 'b,c', 'd;e']]);
  });

  it('refuses a quote in the middle of a field', () => {
    expect(() => parseCsv('a,b\nc,d\ne,f"g')).toThrow(new Error('line 3: unexpected quote'));
  });

  it('refuses text behind a quoted field', () => {
    expect(() => parseCsv('"a\nb" c')).toThrow(new Error('line 2: unexpected text after a quote'));
  });

  it('refuses a quote that is never closed', () => {
    expect(() => parseCsv('a\n"b\nc\nd')).toThrow(new Error('line 2: unclosed quote'));
  });
});

describe('formatCsv', () => {
  it('joins fields and rows', () => {
    expect(formatCsv([['a', 'b'], ['c', '']])).toBe('a,b\nc,');
    expect(formatCsv([])).toBe('');
  });

  it('quotes only what needs it', () => {
    expect(formatCsv([['a b', 'a,b', 'say "hi"', 'a\nb', 'a\rb']])).toBe('a b,"a,b","say ""hi""","a\nb","a\rb"');
  });

  it('takes another separator', () => {
    expect(formatCsv([['a,b', 'c;d']], ';')).toBe('a,b;"c;d"');
  });
});
