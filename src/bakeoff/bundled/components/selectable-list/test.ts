import { render, screen, within } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import Component from './Component.svelte';

const item = (name: string, group: string) => ({ id: `id-${name}`, name, group });
const items = [
  item('Oboe', 'wood'),
  item('Tuba', 'brass'),
  item('Flute', 'wood'),
  item('Horn', 'brass'),
  item('Viola', 'strings'),
  item('Cello', 'strings'),
];

const box = (name: string) => screen.getByRole('checkbox', { name }) as HTMLInputElement;
const all = () => box('Select all');
const summary = () => screen.getByTestId('summary').textContent?.trim();
const onScreen = () =>
  screen.queryAllByRole('group').flatMap((group) =>
    within(group)
      .getAllByRole('checkbox')
      .map((checkbox) => (checkbox as HTMLInputElement).labels?.[0]?.textContent?.trim()),
  );
const checked = () => onScreen().filter((name) => box(name!).checked);

function show(onchange?: (ids: string[]) => void) {
  const result = render(Component, { items, onchange });
  const user = userEvent.setup();
  return {
    ...result,
    user,
    click: (name: string) => user.click(box(name)),
    async shiftClick(name: string) {
      await user.keyboard('{Shift>}');
      await user.click(box(name));
      await user.keyboard('{/Shift}');
    },
    async filter(text: string) {
      await user.clear(screen.getByLabelText('Filter'));
      if (text) await user.type(screen.getByLabelText('Filter'), text);
    },
  };
}

describe('list with selection', () => {
  it('groups the items and selects them one by one', async () => {
    const onchange = vi.fn();
    const { click } = show(onchange);
    expect(screen.getAllByRole('group').map((group) => group.getAttribute('aria-label') ?? '')).toHaveLength(3);
    expect(within(screen.getByRole('group', { name: 'wood' })).getAllByRole('checkbox')).toHaveLength(2);
    expect(onScreen()).toEqual(['Tuba', 'Horn', 'Viola', 'Cello', 'Oboe', 'Flute']);
    expect(summary()).toBe('Nothing selected');
    await click('Cello');
    await click('Oboe');
    await click('Cello');
    expect(summary()).toBe('1 selected');
    await click('Horn');
    expect(onchange.mock.calls.map(([ids]) => ids)).toEqual([
      ['id-Cello'],
      ['id-Oboe', 'id-Cello'],
      ['id-Oboe'],
      ['id-Oboe', 'id-Horn'],
    ]);
  });

  it('filters without touching the selection', async () => {
    const { click, filter } = show();
    await click('Tuba');
    await click('Viola');
    await filter(' O ');
    expect(onScreen()).toEqual(['Horn', 'Viola', 'Cello', 'Oboe']);
    expect(summary()).toBe('2 selected, 1 hidden');
    await filter('xyz');
    expect(screen.queryByRole('group')).not.toBeInTheDocument();
    expect(screen.getByText('Nothing found')).toBeInTheDocument();
    expect(all()).toBeDisabled();
    expect(summary()).toBe('2 selected, 2 hidden');
    await filter('');
    expect(checked()).toEqual(['Tuba', 'Viola']);
    expect(summary()).toBe('2 selected');
  });

  it('shows in the upper checkbox how many are selected', async () => {
    const { click, filter } = show();
    expect([all().checked, all().indeterminate]).toEqual([false, false]);
    await click('Horn');
    expect([all().checked, all().indeterminate]).toEqual([false, true]);
    await filter('horn');
    expect([all().checked, all().indeterminate]).toEqual([true, false]);
    await filter('cello');
    expect([all().checked, all().indeterminate]).toEqual([false, false]);
  });

  it('selects and deselects all that is visible, and only that', async () => {
    const onchange = vi.fn();
    const { click, filter } = show(onchange);
    await click('Tuba');
    await filter('o');
    await click('Viola');
    await click('Select all');
    expect(summary()).toBe('5 selected, 1 hidden');
    expect(onchange).toHaveBeenLastCalledWith(['id-Oboe', 'id-Tuba', 'id-Horn', 'id-Viola', 'id-Cello']);
    expect([all().checked, all().indeterminate]).toEqual([true, false]);
    await click('Select all');
    expect(onchange).toHaveBeenLastCalledWith(['id-Tuba']);
    expect(checked()).toEqual([]);
    expect(onchange).toHaveBeenCalledTimes(4);
  });

  it('gives a whole range the same state with a shift-click', async () => {
    const onchange = vi.fn();
    const { click, shiftClick } = show(onchange);
    await shiftClick('Cello');
    expect(checked()).toEqual(['Cello']);
    await shiftClick('Tuba');
    expect(checked()).toEqual(['Tuba', 'Horn', 'Viola', 'Cello']);
    expect(onchange).toHaveBeenCalledTimes(2);
    await click('Viola');
    await shiftClick('Oboe');
    expect(checked()).toEqual(['Tuba', 'Horn', 'Viola', 'Cello', 'Oboe']);
    await shiftClick('Horn');
    expect(checked()).toEqual(['Tuba']);
    expect(onchange).toHaveBeenLastCalledWith(['id-Tuba']);
  });

  it('takes the range from what is on the screen', async () => {
    const { click, shiftClick, filter } = show();
    await click('Horn');
    await filter('o');
    await shiftClick('Cello');
    expect(checked()).toEqual(['Horn', 'Viola', 'Cello']);
    await filter('u');
    await shiftClick('Flute');
    expect(checked()).toEqual(['Flute']);
    await filter('');
    expect(checked()).toEqual(['Horn', 'Viola', 'Cello', 'Flute']);
    expect(summary()).toBe('4 selected');
  });

  it('forgets items that leave', async () => {
    const onchange = vi.fn();
    const { click, rerender } = show(onchange);
    await click('Tuba');
    await click('Horn');
    await rerender({ items: items.filter(({ name }) => name !== 'Tuba') });
    expect(summary()).toBe('1 selected');
    await rerender({ items });
    expect(box('Tuba')).not.toBeChecked();
    expect(summary()).toBe('1 selected');
    await click('Viola');
    expect(onchange).toHaveBeenLastCalledWith(['id-Horn', 'id-Viola']);
  });
});
