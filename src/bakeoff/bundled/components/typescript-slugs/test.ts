import { describe, expect, it } from 'vitest';
import { slugify, uniqueSlugs } from './solution';

describe('slugify', () => {
  it('joins lower-case words by hyphens', () => {
    expect(slugify('Ten Plants for Dark Rooms')).toBe('ten-plants-for-dark-rooms');
    expect(slugify('2024: a review')).toBe('2024-a-review');
  });

  it('has no hyphen at its ends, and never two in a row', () => {
    expect(slugify('  (What?) -- really!  ')).toBe('what-really');
  });

  it('removes accents', () => {
    expect(slugify('Über Äpfel')).toBe('uber-apfel');
    expect(slugify('Straße nach Ærø')).toBe('strasse-nach-aero');
  });

  it('writes out the ampersand', () => {
    expect(slugify('Salt & Pepper')).toBe('salt-and-pepper');
    expect(slugify('R&B')).toBe('r-and-b');
  });

  it('drops apostrophes', () => {
    expect(slugify("Don't Panic")).toBe('dont-panic');
    expect(slugify('The Baker’s Dozen')).toBe('the-bakers-dozen');
  });

  it('is cut between words', () => {
    expect(slugify('one two three', 8)).toBe('one-two');
    expect(slugify('one two three', 7)).toBe('one-two');
    expect(slugify('one two three', 6)).toBe('one');
    expect(slugify('one twelve six', 9)).toBe('one');
    expect(slugify('The quick brown fox jumps over the lazy dog')).toBe('the-quick-brown-fox-jumps-over-the-lazy');
  });

  it('cuts a first word that is too long', () => {
    expect(slugify('Incomprehensible words', 6)).toBe('incomp');
  });

  it('is never empty', () => {
    expect(slugify('???')).toBe('untitled');
    expect(slugify('')).toBe('untitled');
  });
});

describe('uniqueSlugs', () => {
  it('leaves different slugs as they are', () => {
    expect(uniqueSlugs(['First', 'Second'])).toEqual(['first', 'second']);
  });

  it('numbers what is there again', () => {
    expect(uniqueSlugs(['News', 'Old', 'News!', 'news'])).toEqual(['news', 'old', 'news-2', 'news-3']);
  });

  it('skips numbers that are taken', () => {
    expect(uniqueSlugs(['A', 'A 2', 'A'])).toEqual(['a', 'a-2', 'a-3']);
    expect(uniqueSlugs(['A', 'A', 'A 2'])).toEqual(['a', 'a-3', 'a-2']);
  });
});
