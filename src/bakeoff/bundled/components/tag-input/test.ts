import { fireEvent, render, screen, waitFor, within } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { flushSync } from 'svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import Component from './Component.svelte';

let form: HTMLFormElement;
const onsubmit = vi.fn((event: Event) => event.preventDefault());

beforeEach(() => {
  form = document.createElement('form');
  form.append(Object.assign(document.createElement('button'), { type: 'submit', textContent: 'Save' }));
  form.addEventListener('submit', onsubmit);
  document.body.append(form);
  onsubmit.mockClear();
});

afterEach(() => {
  form.remove();
});

function show(props: { tags?: string[]; max?: number } = {}) {
  if (props.tags) Object.freeze(props.tags);
  render(Component, { target: form, props: { label: 'Topics', name: 'topic', ...props } });
  return userEvent.setup();
}

const field = () => screen.getByLabelText('Topics') as HTMLInputElement;
const status = () => screen.getByRole('status').textContent?.trim();
const sent = () => [...new FormData(form).entries()].map(([name, value]) => `${name}=${value}`);
const removeButtons = () => {
  const list = screen.queryByRole('list', { name: 'Chosen tags' });
  return list ? within(list).getAllByRole('button').map((button) => button.getAttribute('aria-label') ?? button.textContent) : [];
};

describe('tag input', () => {
  it('adds what was typed with Enter and with a comma', async () => {
    const user = show();
    expect(screen.queryByRole('list')).not.toBeInTheDocument();
    expect(status()).toBe('');
    await user.type(field(), '  red wine {Enter}tea,');
    expect(status()).toBe('Added tea');
    expect(field()).toHaveValue('');
    await user.type(field(), 'half');
    expect(sent()).toEqual(['topic=red wine', 'topic=tea']);
    expect(removeButtons()).toHaveLength(2);
    expect(screen.getByRole('button', { name: 'Remove red wine' })).toBeInTheDocument();
  });

  it('never submits the form, nor adds nothing', async () => {
    const user = show({ tags: ['tea'] });
    await user.type(field(), '{Enter}   {Enter}');
    expect(field()).toHaveValue('');
    await user.type(field(), ' ,milk{Enter}');
    expect(onsubmit).not.toHaveBeenCalled();
    expect(sent()).toEqual(['topic=tea', 'topic=milk']);
    await user.click(screen.getByRole('button', { name: 'Remove tea' }));
    expect(onsubmit).not.toHaveBeenCalled();
  });

  it('leaves Enter to an input method', async () => {
    const user = show();
    await user.type(field(), 'ni');
    await fireEvent.keyDown(field(), { key: 'Enter', isComposing: true });
    expect(field()).toHaveValue('ni');
    expect(sent()).toEqual([]);
    await user.keyboard('{Enter}');
    expect(sent()).toEqual(['topic=ni']);
  });

  it('knows duplicates and its limit', async () => {
    const user = show({ tags: ['Tea'], max: 2 });
    await user.type(field(), ' TEA{Enter}');
    expect(status()).toBe('Already there: TEA');
    expect(field()).toHaveValue('');
    await user.type(field(), 'milk{Enter}cocoa{Enter}');
    expect(status()).toBe('No more than 2 tags');
    await user.type(field(), 'MILK,');
    expect(status()).toBe('Already there: MILK');
    expect(sent()).toEqual(['topic=Tea', 'topic=milk']);
  });

  it('takes a pasted list apart, and other pastes as they are', async () => {
    const user = show({ tags: ['tea'] });
    await user.click(field());
    await user.paste('plain words');
    expect(field()).toHaveValue('plain words');
    await user.clear(field());
    await user.paste('milk, TEA\r\ncocoa,,\n water ');
    expect(field()).toHaveValue('');
    expect(sent()).toEqual(['topic=tea', 'topic=milk', 'topic=cocoa', 'topic=water']);
    expect(status()).toBe('Added water');
  });

  it('removes by button and by Backspace in the empty field', async () => {
    const user = show({ tags: ['tea', 'milk', 'cocoa'] });
    await user.click(screen.getByRole('button', { name: 'Remove milk' }));
    expect(status()).toBe('Removed milk');
    await waitFor(() => expect(field()).toHaveFocus());
    await user.keyboard('x{Backspace}');
    expect(sent()).toEqual(['topic=tea', 'topic=cocoa']);
    await user.keyboard('{Backspace}');
    expect(status()).toBe('Removed cocoa');
    await user.keyboard('{Backspace}{Backspace}');
    expect(sent()).toEqual([]);
    expect(status()).toBe('Removed tea');
    expect(screen.queryByRole('list')).not.toBeInTheDocument();
  });

  it('goes back to its first tags when the form is reset', async () => {
    const user = show({ tags: ['tea', 'milk'] });
    await user.click(screen.getByRole('button', { name: 'Remove tea' }));
    await user.type(field(), 'cocoa,half');
    form.reset();
    await waitFor(() => expect(sent()).toEqual(['topic=tea', 'topic=milk']));
    flushSync();
    expect(field()).toHaveValue('');
    expect(status()).toBe('');
    await fireEvent.input(field(), { target: { value: 'more' } });
    await fireEvent.keyDown(field(), { key: 'Enter' });
    expect(sent()).toEqual(['topic=tea', 'topic=milk', 'topic=more']);
  });
});
