import { fireEvent, render, screen, within } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { flushSync } from 'svelte';
import { describe, expect, it } from 'vitest';
import Component from './Component.svelte';

const star = (name: string) => screen.getByRole('radio', { name });
const summary = () => screen.getByTestId('summary');
const box = (n: number) => document.querySelector(`[data-star="${n}"]`)!;
const filled = () =>
  [...document.querySelectorAll('[data-star].filled')].map((element) => Number(element.getAttribute('data-star')));

/** A parent that binds `value` and counts what the component writes. */
function boundTo(start: number, props: Record<string, unknown> = {}) {
  let value = $state(start);
  const writes: number[] = [];
  render(Component, {
    label: 'Food',
    ...props,
    get value() {
      return value;
    },
    set value(next: number) {
      writes.push(next);
      value = next;
    },
  });
  return {
    writes,
    get value() {
      return value;
    },
    set(next: number) {
      flushSync(() => (value = next));
    },
  };
}

describe('star rating', () => {
  it('shows the stars there are and the value it was given', () => {
    render(Component, { label: 'Food', value: 2, max: 4 });
    const group = screen.getByRole('radiogroup', { name: 'Food' });
    expect(within(group).getAllByRole('radio')).toHaveLength(4);
    expect(star('1 star')).not.toBeChecked();
    expect(star('2 stars')).toBeChecked();
    expect(summary()).toHaveTextContent(/^2 of 4$/);
    expect(filled()).toEqual([1, 2]);
  });

  it('works without a binding', async () => {
    const user = userEvent.setup();
    render(Component, { label: 'Food' });
    expect(summary()).toHaveTextContent(/^Not rated$/);
    expect(screen.queryByRole('button', { name: 'Clear rating' })).not.toBeInTheDocument();
    await user.click(star('4 stars'));
    expect(summary()).toHaveTextContent(/^4 of 5$/);
    await user.click(screen.getByRole('button', { name: 'Clear rating' }));
    expect(summary()).toHaveTextContent(/^Not rated$/);
    expect(screen.queryByRole('radio', { checked: true })).not.toBeInTheDocument();
  });

  it('writes to the parent and follows it', async () => {
    const user = userEvent.setup();
    const parent = boundTo(1);
    expect(screen.getByRole('button', { name: 'Clear rating' })).toBeInTheDocument();
    await user.click(star('3 stars'));
    await user.pointer({ target: document.body });
    expect(parent.value).toBe(3);
    parent.set(5);
    expect(star('5 stars')).toBeChecked();
    expect(filled()).toEqual([1, 2, 3, 4, 5]);
    await user.click(screen.getByRole('button', { name: 'Clear rating' }));
    expect(parent.value).toBe(0);
    expect(parent.writes).toEqual([3, 0]);
  });

  it('shows odd values sensibly and never writes them back', () => {
    const parent = boundTo(99);
    expect(summary()).toHaveTextContent(/^5 of 5$/);
    expect(star('5 stars')).toBeChecked();
    for (const [value, text] of [[-3, 'Not rated'], [2.9, '2 of 5'], [Number.NaN, 'Not rated']] as const) {
      parent.set(value);
      expect(summary()).toHaveTextContent(text);
    }
    expect(filled()).toEqual([]);
    expect(parent.writes).toEqual([]);
  });

  it('previews the star under the pointer and changes nothing by it', async () => {
    const parent = boundTo(2);
    await fireEvent.pointerEnter(box(4));
    expect(filled()).toEqual([1, 2, 3, 4]);
    expect(summary()).toHaveTextContent(/^2 of 5$/);
    await fireEvent.pointerLeave(box(4));
    await fireEvent.pointerEnter(box(1));
    expect(filled()).toEqual([1]);
    await fireEvent.pointerLeave(box(1));
    expect(filled()).toEqual([1, 2]);
    expect(parent.writes).toEqual([]);
  });

  it('lets nobody touch it when it is read-only', async () => {
    const user = userEvent.setup();
    const parent = boundTo(3, { readonly: true });
    for (const radio of screen.getAllByRole('radio')) expect(radio).toBeDisabled();
    expect(screen.queryByRole('button', { name: 'Clear rating' })).not.toBeInTheDocument();
    await user.click(star('5 stars'));
    await fireEvent.pointerEnter(box(5));
    expect(filled()).toEqual([1, 2, 3]);
    expect(parent.value).toBe(3);
  });

  it('stands beside another one without disturbing it', async () => {
    const user = userEvent.setup();
    render(Component, { label: 'Food', value: 2 });
    render(Component, { label: 'Service', value: 4 });
    const [food, service] = ['Food', 'Service'].map((name) => screen.getByRole('radiogroup', { name }));
    await user.click(within(food).getByRole('radio', { name: '5 stars' }));
    expect(within(food).getByRole('radio', { name: '5 stars' })).toBeChecked();
    expect(within(service).getByRole('radio', { name: '4 stars' })).toBeChecked();
    expect(screen.getAllByTestId('summary').map((element) => element.textContent)).toEqual(['5 of 5', '4 of 5']);
  });
});
