import { render, screen } from '@testing-library/vue';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import Counter from './Component.vue';

const count = () => screen.getByRole('button', { name: /^Count/ });
const reset = () => screen.getByRole('button', { name: 'Reset' });

describe('counter', () => {
  it('begins at zero', () => {
    render(Counter);
    expect(count()).toHaveTextContent(/^Count: 0$/);
    expect(reset()).toBeDisabled();
  });

  it('counts by one', async () => {
    render(Counter);
    await userEvent.setup().click(count());
    expect(count()).toHaveTextContent(/^Count: 1$/);
    expect(reset()).toBeEnabled();
  });

  it('begins where it is told to, and counts by the step', async () => {
    const user = userEvent.setup();
    render(Counter, { props: { start: 5, step: 3 } });
    await user.click(count());
    await user.click(count());
    expect(count()).toHaveTextContent(/^Count: 11$/);
  });

  it('goes back to its start', async () => {
    const user = userEvent.setup();
    render(Counter, { props: { start: 5, step: 3 } });
    await user.click(count());
    await user.click(reset());
    expect(count()).toHaveTextContent(/^Count: 5$/);
    expect(reset()).toBeDisabled();
  });
});
