import { createEvent, fireEvent, render, screen } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { flushSync } from 'svelte';
import { afterEach, describe, expect, it } from 'vitest';
import Component, { createHistory } from './Component.svelte';

const stops: (() => void)[] = [];

/** Everything an effect saw of a value, from now on. */
function watched<T>(read: () => T): T[] {
  const seen: T[] = [];
  stops.push(
    $effect.root(() => {
      $effect(() => {
        seen.push(read());
      });
    }),
  );
  flushSync();
  return seen;
}

afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

const area = () => screen.getByLabelText('Text');
const button = (name: string) => screen.getByRole('button', { name });

describe('undo history', () => {
  it('goes back and forward, and forgets the way forward on a new value', () => {
    const history = createHistory('a');
    history.undo();
    history.redo();
    expect(history.value).toBe('a');
    history.set('b');
    history.set('c');
    history.undo();
    history.undo();
    history.undo();
    expect([history.value, history.canUndo, history.canRedo]).toEqual(['a', false, true]);
    history.redo();
    expect(history.value).toBe('b');
    history.set('b');
    expect(history.canRedo).toBe(true);
    history.set('d');
    expect(history.canRedo).toBe(false);
    history.undo();
    expect(history.value).toBe('b');
  });

  it('wakes its readers exactly when their answer changes', () => {
    const history = createHistory(1);
    const values = watched(() => history.value);
    const undoable = watched(() => history.canUndo);
    const redoable = watched(() => history.canRedo);
    const twice = $derived(history.value * 2);
    const doubled = () => twice;
    for (const next of [2, 3, 3, 4]) flushSync(() => history.set(next));
    flushSync(history.undo);
    flushSync(history.undo);
    expect(values).toEqual([1, 2, 3, 4, 3, 2]);
    expect(undoable).toEqual([false, true]);
    expect(redoable).toEqual([false, true]);
    expect(doubled()).toBe(4);
    flushSync(history.undo);
    expect(undoable).toEqual([false, true, false]);
  });

  it('keeps objects as they are and functions usable on their own', () => {
    const [first, second] = [{ list: [1] }, { list: [2] }];
    const { set, undo, redo, ...rest } = createHistory(first);
    const history = createHistory(first);
    history.set(second);
    expect(history.value).toBe(second);
    history.undo();
    expect(history.value).toBe(first);
    expect(() => [set(second), undo(), redo(), rest.batch(() => set(first))]).not.toThrow();
    expect(Object.is(createHistory(Number.NaN).value, Number.NaN)).toBe(true);
  });

  it('keeps no more steps than its limit', () => {
    const history = createHistory(0, { limit: 3 });
    for (const next of [1, 2, 3, 4, 5]) history.set(next);
    for (let press = 0; press < 9; press += 1) history.undo();
    expect(history.value).toBe(2);
    for (let press = 0; press < 9; press += 1) history.redo();
    expect(history.value).toBe(5);
    history.undo();
    expect(history.value).toBe(4);
  });

  it('makes one step of a batch, and none of a batch that changed nothing', () => {
    const history = createHistory(0);
    history.set(1);
    const answer = history.batch(() => {
      history.set(2);
      history.batch(() => history.set(history.value * 10));
      history.undo();
      history.set(history.value + 1);
      return 'done';
    });
    expect([answer, history.value]).toEqual(['done', 21]);
    history.undo();
    expect(history.value).toBe(1);
    history.batch(() => {
      history.set(5);
      history.set(1);
    });
    expect(history.canRedo).toBe(true);
    history.undo();
    expect(history.value).toBe(0);
  });

  it('takes a batch back that throws', () => {
    const history = createHistory('start');
    const seen = history.batch(() => {
      history.set('kept');
      expect(() =>
        history.batch(() => {
          history.set('lost');
          throw new Error('inner');
        }),
      ).toThrow('inner');
      return history.value;
    });
    expect(seen).toBe('kept');
    expect(() =>
      history.batch(() => {
        history.set('lost');
        throw new Error('outer');
      }),
    ).toThrow('outer');
    expect(history.value).toBe('kept');
    history.undo();
    expect([history.value, history.canUndo]).toEqual(['start', false]);
    history.redo();
    expect(history.value).toBe('kept');
  });

  it('is an editor with buttons', async () => {
    const user = userEvent.setup();
    render(Component, { text: 'hi' });
    expect(button('Undo')).toBeDisabled();
    expect(button('Redo')).toBeDisabled();
    await user.type(area(), '!?');
    await user.click(button('Upper case'));
    expect(area()).toHaveValue('HI!?');
    await user.click(button('Undo'));
    await user.click(button('Undo'));
    expect(area()).toHaveValue('hi!');
    await user.click(button('Redo'));
    expect(area()).toHaveValue('hi!?');
    expect(button('Redo')).toBeEnabled();
    await user.type(area(), '.');
    expect(button('Redo')).toBeDisabled();
  });

  it('is an editor with keys, in place of the browser', async () => {
    const user = userEvent.setup();
    render(Component);
    await user.type(area(), 'ab');
    async function press(init: KeyboardEventInit) {
      const event = createEvent.keyDown(area(), { cancelable: true, ...init });
      await fireEvent(area(), event);
      return event.defaultPrevented;
    }
    expect(await press({ key: 'z', ctrlKey: true })).toBe(true);
    expect(area()).toHaveValue('a');
    expect(await press({ key: 'z', metaKey: true })).toBe(true);
    expect(area()).toHaveValue('');
    expect(await press({ key: 'Z', ctrlKey: true, shiftKey: true })).toBe(true);
    expect(area()).toHaveValue('a');
    expect(await press({ key: 'z', metaKey: true, shiftKey: true })).toBe(true);
    expect(area()).toHaveValue('ab');
    expect(await press({ key: 'z' })).toBe(false);
    expect(area()).toHaveValue('ab');
  });
});
