import { render, screen } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import Component from './Component.svelte';

const shown = () => screen.getByTestId('value');
const button = (name: string) => screen.getByRole('button', { name });

describe('quantity stepper', () => {
  it('starts at the minimum and is named by its label', () => {
    render(Component, { label: 'Apples', min: 2 });
    expect(screen.getByRole('group', { name: 'Apples' })).toBeInTheDocument();
    expect(shown()).toHaveTextContent(/^2$/);
    expect(button('Decrease')).toBeDisabled();
    expect(button('Increase')).toBeEnabled();
  });

  it('moves by the step in both directions', async () => {
    const user = userEvent.setup();
    render(Component, { label: 'Apples', initial: 4, step: 3 });
    await user.click(button('Increase'));
    expect(shown()).toHaveTextContent(/^7$/);
    await user.click(button('Decrease'));
    await user.click(button('Decrease'));
    expect(shown()).toHaveTextContent(/^1$/);
  });

  it('stops at a limit that a whole step would pass', async () => {
    const user = userEvent.setup();
    render(Component, { label: 'Apples', initial: 9, step: 4 });
    await user.click(button('Increase'));
    expect(shown()).toHaveTextContent(/^10$/);
    expect(button('Increase')).toBeDisabled();
    expect(button('Decrease')).toBeEnabled();
  });

  it('takes a start outside the limits as the nearer limit', async () => {
    const user = userEvent.setup();
    render(Component, { label: 'Apples', initial: 40, max: 12 });
    expect(shown()).toHaveTextContent(/^12$/);
    expect(screen.queryByRole('button', { name: 'Reset' })).not.toBeInTheDocument();
    await user.click(button('Decrease'));
    await user.click(button('Reset'));
    expect(shown()).toHaveTextContent(/^12$/);
    expect(screen.queryByRole('button', { name: 'Reset' })).not.toBeInTheDocument();
  });

  it('reports every change once and nothing else', async () => {
    const user = userEvent.setup();
    const onchange = vi.fn();
    render(Component, { label: 'Apples', initial: 1, onchange });
    expect(onchange).not.toHaveBeenCalled();
    await user.click(button('Decrease'));
    await user.click(button('Decrease'));
    await user.click(button('Increase'));
    await user.click(button('Increase'));
    await user.click(button('Reset'));
    expect(onchange.mock.calls).toEqual([[0], [1], [2], [1]]);
  });
});
