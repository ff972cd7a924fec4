import { render, screen, waitFor, within } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import Component from './Component.svelte';

const nodes = [
  {
    id: 'src',
    label: 'src',
    children: [
      { id: 'lib', label: 'lib', children: [{ id: 'util', label: 'Utilities' }, { id: 'url', label: 'urls' }] },
      { id: 'app', label: 'app', children: [{ id: 'main', label: 'main' }] },
      { id: 'index', label: 'index' },
    ],
  },
  { id: 'empty', label: 'empty', children: [] },
  { id: 'docs', label: 'docs', children: [{ id: 'intro', label: 'intro' }] },
];

const item = (name: string) => screen.getByRole('treeitem', { name });
const visible = () => screen.getAllByRole('treeitem').map((element) => element.getAttribute('aria-label'));
const tabStops = () =>
  screen
    .getAllByRole('treeitem')
    .filter((element) => element.getAttribute('tabindex') === '0')
    .map((element) => element.getAttribute('aria-label'));
const selection = () => screen.queryAllByRole('treeitem', { selected: true }).map((e) => e.getAttribute('aria-label'));
const focused = (name: string) => waitFor(() => expect(item(name)).toHaveFocus());

function show(props: Record<string, unknown> = {}) {
  render(Component, { label: 'Files', nodes, ...props });
  return userEvent.setup();
}

describe('tree view', () => {
  it('describes levels, branches and leaves', () => {
    show({ open: ['src', 'lib'], selected: 'url' });
    expect(screen.getByRole('tree', { name: 'Files' })).toBeInTheDocument();
    expect(visible()).toEqual(['src', 'lib', 'Utilities', 'urls', 'app', 'index', 'empty', 'docs']);
    expect(visible().map((name) => item(name!).getAttribute('aria-level'))).toEqual([..."12332211"]);
    expect(visible().map((name) => item(name!).getAttribute('aria-expanded'))).toEqual(
      ['true', 'true', null, null, 'false', null, null, 'false'],
    );
    expect(within(within(item('src')).getAllByRole('group')[0]).getAllByRole('treeitem')).toHaveLength(5);
    expect(selection()).toEqual(['urls']);
    expect(tabStops()).toEqual(['urls']);
  });

  it('opens with the toggle and selects with the label, each without the other', async () => {
    const user = show();
    await user.click(screen.getByTestId('toggle-src'));
    await user.click(screen.getByTestId('toggle-lib'));
    expect(visible()).toContain('urls');
    expect(selection()).toEqual([]);
    expect(tabStops()).toEqual(['lib']);
    await user.click(screen.getByTestId('label-url'));
    expect(selection()).toEqual(['urls']);
    expect(tabStops()).toEqual(['urls']);
    await user.click(screen.getByTestId('label-lib'));
    expect(selection()).toEqual(['lib']);
    expect(visible()).toContain('urls');
    expect(screen.queryByTestId('toggle-empty')).not.toBeInTheDocument();
  });

  it('walks through the visible nodes and stops at the ends', async () => {
    const user = show({ open: ['src', 'lib'] });
    await user.tab();
    await focused('src');
    await user.keyboard('{ArrowUp}');
    await focused('src');
    for (const name of ['lib', 'Utilities', 'urls', 'app']) {
      await user.keyboard('{ArrowDown}');
      await focused(name);
    }
    await user.keyboard('{ArrowUp}');
    await focused('urls');
    await user.keyboard('{End}');
    await focused('docs');
    await user.keyboard('{ArrowDown}');
    await focused('docs');
    expect(tabStops()).toEqual(['docs']);
    await user.keyboard('{Home}');
    await focused('src');
    expect(tabStops()).toEqual(['src']);
  });

  it('opens, enters, leaves and closes branches sideways, one node a press', async () => {
    const user = show();
    await user.tab();
    await user.keyboard('{ArrowRight}');
    expect(visible()).toEqual(['src', 'lib', 'app', 'index', 'empty', 'docs']);
    await focused('src');
    await user.keyboard('{ArrowRight}');
    await focused('lib');
    await user.keyboard('{ArrowRight}');
    expect(visible()).toContain('urls');
    await user.keyboard('{ArrowDown}{ArrowRight}');
    await focused('Utilities');
    await user.keyboard('{ArrowLeft}');
    await focused('lib');
    await user.keyboard('{ArrowLeft}');
    expect(item('lib')).toHaveAttribute('aria-expanded', 'false');
    expect(item('src')).toHaveAttribute('aria-expanded', 'true');
    await focused('lib');
    await user.keyboard('{ArrowLeft}');
    await focused('src');
    await user.keyboard('{ArrowLeft}{ArrowLeft}');
    expect(visible()).toEqual(['src', 'empty', 'docs']);
    await focused('src');
  });

  it('selects the focused node alone with Enter and Space', async () => {
    const user = show({ open: ['src', 'lib'] });
    await user.tab();
    await user.keyboard('{ArrowDown}{ArrowDown}{Enter}');
    expect(selection()).toEqual(['Utilities']);
    await user.keyboard('{ArrowUp} ');
    expect(selection()).toEqual(['lib']);
    expect(item('lib')).toHaveAttribute('aria-expanded', 'true');
  });

  it('opens all siblings with an asterisk, and no others', async () => {
    const user = show({ open: ['src'] });
    await user.tab();
    await user.keyboard('{ArrowDown}*');
    expect(visible()).toEqual(['src', 'lib', 'Utilities', 'urls', 'app', 'main', 'index', 'empty', 'docs']);
    expect(item('docs')).toHaveAttribute('aria-expanded', 'false');
    await focused('lib');
  });

  it('finds the next label by its first letter, round the end', async () => {
    const user = show({ open: ['src', 'lib', 'docs'] });
    await user.tab();
    await user.keyboard('U');
    await focused('Utilities');
    await user.keyboard('u');
    await focused('urls');
    await user.keyboard('u');
    await focused('Utilities');
    await user.keyboard('i');
    await focused('index');
    await user.keyboard('i');
    await focused('intro');
    await user.keyboard('z{Control>}s{/Control}');
    await focused('intro');
  });

  it('keeps one tab stop when the branch around it closes', async () => {
    const user = show({ open: ['src', 'lib'], selected: 'util' });
    expect(tabStops()).toEqual(['Utilities']);
    await user.click(screen.getByTestId('toggle-src'));
    expect(tabStops()).toEqual(['src']);
    await user.click(screen.getByTestId('toggle-src'));
    expect(tabStops()).toEqual(['src']);
    expect(selection()).toEqual(['Utilities']);
  });
});
