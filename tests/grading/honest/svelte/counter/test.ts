import { render, screen } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import Component from './Component.svelte';

describe('counter', () => {
  it('starts at zero', () => {
    render(Component);
    expect(screen.getByTestId('count')).toHaveTextContent('0');
    expect(screen.getByRole('heading')).toBeInTheDocument();
  });

  it('starts where it is told', () => {
    render(Component, { start: 12 });
    expect(screen.getByTestId('count')).toHaveTextContent('12');
  });

  it('counts up', async () => {
    render(Component, { start: 1 });
    await userEvent.click(screen.getByRole('button', { name: 'More' }));
    await userEvent.click(screen.getByRole('button', { name: 'More' }));
    expect(screen.getByTestId('count').textContent).toContain('3');
  });

  it('does not go below zero', async () => {
    render(Component, { start: 1 });
    const less = screen.getByRole('button', { name: 'Less' });
    await userEvent.click(less);
    expect(less).toBeDisabled();
    expect(screen.queryByText('Big')).not.toBeInTheDocument();
  });

  it('says when it is big', () => {
    render(Component, { start: 100 });
    expect(screen.getByText('Big')).toBeVisible();
  });

  it('tells its parent', async () => {
    const onchange = vi.fn();
    render(Component, { start: 4, onchange });
    await userEvent.click(screen.getByRole('button', { name: 'More' }));
    expect(onchange).toHaveBeenCalledWith(5);
    expect(onchange).toHaveBeenCalledOnce();
  });

  it.each([[0, 'none'], [1, 'one'], [7, 'many']])('says %i in words', (start, words) => {
    render(Component, { start });
    expect(screen.getByRole('status')).toHaveTextContent(words);
  });
});
