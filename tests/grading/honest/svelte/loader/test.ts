import { render, screen, waitFor, within } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import Component from './Component.svelte';

const people = [{ id: 1, name: 'Ada' }, { id: 2, name: 'Bob' }, { id: 3, name: 'Cleo' }];

describe('people', () => {
  it('shows that it is loading', () => {
    render(Component, { load: () => new Promise(() => {}) });
    expect(screen.getByText('Loading…')).toBeInTheDocument();
  });

  it('lists people', async () => {
    render(Component, { load: async () => people });
    const list = await screen.findByRole('list');
    expect(within(list).getAllByRole('listitem').map((item) => item.textContent?.trim())).toEqual(['Ada', 'Bob', 'Cleo']);
  });

  it('shows what went wrong', async () => {
    render(Component, { load: async () => { throw new Error('no network'); } });
    expect(await screen.findByRole('alert')).toHaveTextContent('no network');
  });

  it('filters', async () => {
    render(Component, { load: async () => people });
    await screen.findByRole('list');
    await userEvent.type(screen.getByLabelText('Filter'), 'b');
    await waitFor(() => expect(screen.getAllByRole('listitem')).toHaveLength(1));
    expect(screen.getByText('Bob')).toBeInTheDocument();
  });

  it('chooses one', async () => {
    const onchoose = vi.fn();
    render(Component, { load: async () => people, onchoose });
    await userEvent.click(await screen.findByRole('button', { name: 'Cleo' }));
    expect(onchoose.mock.calls).toEqual([[3]]);
  });
});

describe('with a clock', () => {
  beforeEach(() => { vi.useFakeTimers(); });
  afterEach(() => { vi.useRealTimers(); });

  it('says when it takes long', async () => {
    render(Component, { load: () => new Promise(() => {}) });
    expect(screen.queryByText('Still loading…')).toBeNull();
    await vi.advanceTimersByTimeAsync(3000);
    expect(screen.getByText('Still loading…')).toBeTruthy();
  });
});
