import { render, screen, within } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { createRawSnippet } from 'svelte';
import { describe, expect, it } from 'vitest';
import Component from './Component.svelte';

type Row = Record<string, unknown>;

const columns = [
  { key: 'name', title: 'Name', sortable: true },
  { key: 'size', title: 'Size', sortable: true },
  { key: 'note', title: 'Note' },
];
const rows: Row[] = [
  { id: 1, name: 'pear', size: 9, note: 'a' },
  { id: 2, name: 'Äpfel', size: 10, note: null },
  { id: 3, name: 'fig', size: null, note: 'c' },
  { id: 4, name: 'apple', size: 9, note: 'd' },
  { id: 5, name: 'banana', size: 100 },
];

/** A snippet that writes a text and keeps it current. */
function textSnippet<T extends unknown[]>(tag: string, text: (...values: T) => string) {
  return createRawSnippet((...getters: (() => unknown)[]) => ({
    render: () => `<${tag}></${tag}>`,
    setup(node) {
      $effect(() => {
        node.textContent = text(...(getters.map((get) => get()) as T));
      });
    },
  }));
}

const bodyRows = () => within(screen.getAllByRole('rowgroup')[1]).getAllByRole('row');
const column = (index: number) =>
  bodyRows().map((row) => within(row).getAllByRole('cell')[index].textContent?.trim() ?? '');
const press = (name: string) => userEvent.click(screen.getByRole('button', { name }));
const header = (name: string) => screen.getByRole('columnheader', { name });

describe('data table', () => {
  it('shows caption, headers and plain cells in the order given', () => {
    render(Component, { caption: 'Fruit', columns, rows });
    expect(screen.getByRole('table', { name: 'Fruit' })).toBeInTheDocument();
    expect(screen.getAllByRole('columnheader').map((th) => th.getAttribute('aria-sort'))).toEqual(['none', 'none', null]);
    expect(within(header('Note')).queryByRole('button')).not.toBeInTheDocument();
    expect(column(0)).toEqual(['pear', 'Äpfel', 'fig', 'apple', 'banana']);
    expect(column(2)).toEqual(['a', '', 'c', 'd', '']);
    expect(document.querySelector('tfoot')).toBeNull();
  });

  it('goes through ascending, descending and back', async () => {
    render(Component, { caption: 'Fruit', columns, rows });
    await press('Name');
    expect(column(0)).toEqual(['pear', 'Äpfel', 'fig', 'apple', 'banana'].sort((a, b) => a.localeCompare(b)));
    expect(header('Name')).toHaveAttribute('aria-sort', 'ascending');
    await press('Name');
    expect(column(0)[0]).toBe('pear');
    expect(header('Name')).toHaveAttribute('aria-sort', 'descending');
    await press('Size');
    expect(header('Name')).toHaveAttribute('aria-sort', 'none');
    expect(header('Size')).toHaveAttribute('aria-sort', 'ascending');
    await press('Size');
    await press('Size');
    expect(header('Size')).toHaveAttribute('aria-sort', 'none');
    expect(column(0)).toEqual(['pear', 'Äpfel', 'fig', 'apple', 'banana']);
  });

  it('compares numbers as numbers, keeps ties in order and missing values last', async () => {
    const given = Object.freeze([...rows]) as Row[];
    render(Component, { caption: 'Fruit', columns, rows: given });
    await press('Size');
    expect(column(0)).toEqual(['pear', 'apple', 'Äpfel', 'banana', 'fig']);
    await press('Size');
    expect(column(0)).toEqual(['banana', 'Äpfel', 'pear', 'apple', 'fig']);
    expect(given.map((row) => row.id)).toEqual([1, 2, 3, 4, 5]);
  });

  it('compares a number with a text as texts and keeps equal texts in order', async () => {
    const mixed = ['b', 10, 'a', 9, 'b'].map((name, index) => ({ id: index, name, note: String(index) }));
    render(Component, { caption: 'Mixed', columns, rows: mixed });
    await press('Name');
    expect(column(2)).toEqual(['3', '1', '2', '0', '4']);
    await press('Name');
    expect(column(2)).toEqual(['0', '4', '2', '1', '3']);
  });

  it('draws cells with the snippet, also after sorting', async () => {
    const cell = textSnippet('b', (row: Row, { key }: { key: string }) => `${key}=${row[key] ?? '?'}`);
    render(Component, { caption: 'Fruit', columns, rows, cell });
    expect(column(1)).toEqual(['size=9', 'size=10', 'size=?', 'size=9', 'size=100']);
    await press('Size');
    await press('Size');
    expect(column(1)).toEqual(['size=100', 'size=10', 'size=9', 'size=9', 'size=?']);
    expect(bodyRows()[0].querySelectorAll('td > b')).toHaveLength(3);
  });

  it('has one wide cell when there are no rows', async () => {
    const { rerender } = render(Component, { caption: 'Fruit', columns, rows: [] });
    expect(bodyRows()).toHaveLength(1);
    expect(screen.getByRole('cell', { name: 'No data' })).toHaveAttribute('colspan', '3');
    await rerender({ empty: textSnippet('em', () => 'Nothing ripe') });
    expect(screen.getByRole('cell', { name: 'Nothing ripe' })).toHaveAttribute('colspan', '3');
    expect(screen.queryByText('No data')).not.toBeInTheDocument();
  });

  it('hands the rows as shown to the footer and sorts rows that arrive later', async () => {
    const footer = textSnippet('i', (shown: Row[]) => shown.map((row) => row.id).join(' '));
    const { rerender } = render(Component, { caption: 'Fruit', columns, rows, footer });
    const foot = () => document.querySelector('tfoot td')?.textContent;
    expect(foot()).toBe('1 2 3 4 5');
    await press('Size');
    expect(foot()).toBe('1 4 2 5 3');
    await rerender({ rows: [...rows, { id: 6, name: 'cherry', size: 2 }] });
    expect(foot()).toBe('6 1 4 2 5 3');
    expect(column(0)[0]).toBe('cherry');
  });
});
