import { render, screen } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import Component from './Component.svelte';

const bar = () => screen.getByRole('progressbar');
const fill = () => screen.getByTestId('fill');
const progress = () => bar().style.getPropertyValue('--progress').trim();

describe('progress bar', () => {
  it('shows how far it is', () => {
    render(Component, { label: 'Upload', value: 20, max: 50 });
    expect(screen.getByRole('progressbar', { name: 'Upload' })).toHaveClass('bar', 'bar-info');
    expect(bar()).toHaveAttribute('aria-valuemin', '0');
    expect(bar()).toHaveAttribute('aria-valuemax', '50');
    expect(bar()).toHaveAttribute('aria-valuenow', '20');
    expect(progress()).toBe('40%');
    expect(fill().style.width).toBe('40%');
    expect(bar()).not.toHaveClass('complete');
    expect(bar()).not.toHaveClass('indeterminate');
  });

  it('says nothing about progress while it is unknown', async () => {
    const { rerender } = render(Component, { label: 'Upload' });
    expect(bar()).toHaveClass('indeterminate');
    expect(bar()).not.toHaveAttribute('aria-valuenow');
    expect(progress()).toBe('');
    expect(fill().style.width).toBe('');
    await rerender({ value: 0 });
    expect(bar()).not.toHaveClass('indeterminate');
    expect(bar()).toHaveAttribute('aria-valuenow', '0');
    expect(fill().style.width).toBe('0%');
    await rerender({ value: null });
    expect(progress()).toBe('');
    expect(fill().style.width).toBe('');
  });

  it('keeps within its limits and rounds to one decimal', async () => {
    const { rerender } = render(Component, { label: 'Upload', value: 1, max: 3 });
    expect(progress()).toBe('33.3%');
    await rerender({ value: 7 });
    expect(progress()).toBe('100%');
    expect(bar()).toHaveAttribute('aria-valuenow', '3');
    expect(bar()).toHaveClass('complete');
    for (const value of [-2, Number.NaN]) {
      await rerender({ value });
      expect(progress()).toBe('0%');
      expect(bar()).toHaveAttribute('aria-valuenow', '0');
      expect(bar()).not.toHaveClass('complete');
    }
  });

  it('changes its tone', async () => {
    const { rerender } = render(Component, { label: 'Upload', value: 1, tone: 'danger' });
    expect(bar()).toHaveClass('bar', 'bar-danger');
    await rerender({ tone: 'success' });
    expect(bar()).toHaveClass('bar', 'bar-success');
    expect(bar()).not.toHaveClass('bar-danger');
  });

  it('adds the classes of its user in every form', async () => {
    const { rerender } = render(Component, { label: 'Upload', value: 100, class: 'wide tall' });
    expect(bar()).toHaveClass('bar', 'complete', 'wide', 'tall');
    await rerender({ class: { wide: true, tall: false } });
    expect(bar()).toHaveClass('bar', 'complete', 'wide');
    expect(bar()).not.toHaveClass('tall');
    await rerender({ class: ['dim', { wide: false }, ['deep']] });
    expect(bar()).toHaveClass('bar', 'dim', 'deep');
    expect(bar()).not.toHaveClass('wide');
    await rerender({ class: undefined });
    expect([...bar().classList].filter((name) => !name.startsWith('svelte-')).sort()).toEqual(
      ['bar', 'bar-info', 'complete'],
    );
  });

  it('passes other props on but keeps its own attributes and styles', async () => {
    const user = userEvent.setup();
    const onclick = vi.fn();
    render(Component, {
      label: 'Upload',
      value: 10,
      id: 'up',
      'data-kind': 'file',
      style: 'opacity: 0.5; --gap: 2px',
      role: 'button',
      'aria-valuenow': 77,
      onclick,
    });
    expect(bar()).toHaveAttribute('id', 'up');
    expect(bar()).toHaveAttribute('data-kind', 'file');
    expect(bar()).toHaveAttribute('aria-valuenow', '10');
    expect(bar().style.opacity).toBe('0.5');
    expect(bar().style.getPropertyValue('--gap').trim()).toBe('2px');
    expect(progress()).toBe('10%');
    await user.click(bar());
    expect(onclick).toHaveBeenCalledTimes(1);
  });
});
