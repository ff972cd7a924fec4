import { fireEvent, render, screen, within } from '@testing-library/svelte';
import { flushSync } from 'svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import Component from './Component.svelte';

interface Call {
  query: string;
  resolve: (results: string[]) => void;
  reject: (reason: unknown) => void;
}

let calls: Call[] = [];
const search = (query: string) =>
  new Promise<string[]>((resolve, reject) => calls.push({ query, resolve, reject }));

const queries = () => calls.map((call) => call.query);
const field = () => screen.getByLabelText('Search') as HTMLInputElement;
const status = () => screen.getByRole('status').textContent?.trim();
const type = (text: string) => fireEvent.input(field(), { target: { value: text } });
const press = (key: string) => fireEvent.keyDown(field(), { key, code: key });

function results() {
  const list = screen.queryByRole('list', { name: 'Results' });
  return list ? within(list).getAllByRole('listitem').map((item) => item.textContent?.trim()) : null;
}

async function settled() {
  for (let round = 0; round < 10; round += 1) await Promise.resolve();
  flushSync();
}

async function wait(milliseconds: number) {
  vi.advanceTimersByTime(milliseconds);
  await settled();
}

async function answer(call: number, ...found: string[]) {
  calls[call].resolve(found);
  await settled();
}

describe('search as you type', () => {
  beforeEach(() => {
    calls = [];
    vi.useFakeTimers();
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  it('asks once, when the typing has paused', async () => {
    render(Component, { search });
    expect(status()).toBe('Type at least 2 characters');
    await type('ro');
    expect(status()).toBe('');
    await wait(200);
    await type('rose');
    await wait(299);
    expect(queries()).toEqual([]);
    await wait(1);
    expect(queries()).toEqual(['rose']);
    expect(status()).toBe('Searching…');
    await answer(0, 'rose', 'rosemary');
    expect(results()).toEqual(['rose', 'rosemary']);
    expect(status()).toBe('2 results');
    await wait(1000);
    expect(queries()).toEqual(['rose']);
  });

  it('ignores blanks at the ends, and a way there and back', async () => {
    render(Component, { search, delay: 100 });
    await type(' oak');
    await wait(60);
    await type(' oak ');
    await wait(40);
    expect(queries()).toEqual(['oak']);
    await answer(0, 'oak');
    expect(status()).toBe('1 result');
    await type('oaks');
    await wait(50);
    expect(status()).toBe('1 result');
    await type('oak');
    await wait(500);
    expect(queries()).toEqual(['oak']);
    expect(results()).toEqual(['oak']);
  });

  it('drops everything at once when the query becomes too short', async () => {
    render(Component, { search, minLength: 3 });
    await type('elm');
    await wait(300);
    await answer(0, 'elm');
    await type('elms');
    await wait(300);
    await type('el');
    expect(results()).toBeNull();
    expect(status()).toBe('Type at least 3 characters');
    await answer(1, 'late');
    expect(results()).toBeNull();
    await press('Enter');
    await type('el ');
    await wait(1000);
    expect(queries()).toEqual(['elm', 'elms']);
    expect(status()).toBe('Type at least 3 characters');
  });

  it('listens to the latest search only, and keeps the old results meanwhile', async () => {
    render(Component, { search });
    await type('fir');
    await wait(300);
    await answer(0, 'fir');
    await type('pine');
    await wait(300);
    expect(results()).toEqual(['fir']);
    await type('palm');
    await wait(300);
    expect(queries()).toEqual(['fir', 'pine', 'palm']);
    await answer(1, 'pine');
    expect(results()).toEqual(['fir']);
    expect(status()).toBe('Searching…');
    await answer(2);
    expect(results()).toBeNull();
    expect(status()).toBe('No results');
  });

  it('searches at once on Enter, but nothing twice', async () => {
    render(Component, { search });
    await type('yew');
    await press('Enter');
    expect(queries()).toEqual(['yew']);
    await press('Enter');
    await wait(1000);
    expect(queries()).toEqual(['yew']);
    await answer(0, 'yew');
    await press('Enter');
    await wait(1000);
    expect(queries()).toEqual(['yew']);
    expect(status()).toBe('1 result');
  });

  it('reports a failure, and tries again on Enter', async () => {
    render(Component, { search });
    await type('ash');
    await wait(300);
    await answer(0, 'ash');
    await type('ashes');
    await wait(300);
    calls[1].reject(new Error('down'));
    await settled();
    expect(status()).toBe('Search failed');
    expect(results()).toBeNull();
    await press('Enter');
    expect(queries()).toEqual(['ash', 'ashes', 'ashes']);
    expect(status()).toBe('Searching…');
    await answer(2, 'ashes');
    expect(results()).toEqual(['ashes']);
  });

  it('empties itself on Escape, and starts afresh after it', async () => {
    render(Component, { search });
    await type('lime');
    await wait(300);
    await answer(0, 'lime');
    await type('limes');
    await press('Escape');
    expect(field()).toHaveValue('');
    expect(results()).toBeNull();
    expect(status()).toBe('Type at least 2 characters');
    await wait(1000);
    expect(queries()).toEqual(['lime']);
    await type('lime');
    await wait(300);
    expect(queries()).toEqual(['lime', 'lime']);
  });

  it('searches nothing after it was removed', async () => {
    const { unmount } = render(Component, { search });
    await type('teak');
    await wait(299);
    unmount();
    await wait(1000);
    expect(queries()).toEqual([]);
  });
});
