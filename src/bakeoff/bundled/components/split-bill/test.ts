import { render, screen, within } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import Component from './Component.svelte';

async function fill(entries: Record<string, string>) {
  const user = userEvent.setup();
  for (const [label, text] of Object.entries(entries)) {
    const input = screen.getByLabelText(label);
    await user.clear(input);
    if (text) await user.type(input, text);
  }
}

const shares = () =>
  within(screen.getByRole('list', { name: 'Shares' }))
    .getAllByRole('listitem')
    .map((item) => item.textContent?.trim().replace(/\s+/g, ' '));

describe('bill splitter', () => {
  it('starts with nothing to pay, for two', () => {
    render(Component);
    expect(screen.getByTestId('tip')).toHaveTextContent('$0.00');
    expect(screen.getByTestId('total')).toHaveTextContent('$0.00');
    expect(shares()).toEqual(['Person 1: $0.00', 'Person 2: $0.00']);
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
  });

  it('adds the tip and writes the currency it was given', async () => {
    render(Component, { currency: '€' });
    await fill({ Bill: '80', 'Tip %': '15', People: '4' });
    expect(screen.getByTestId('tip')).toHaveTextContent('€12.00');
    expect(screen.getByTestId('total')).toHaveTextContent('€92.00');
    expect(shares()).toEqual([1, 2, 3, 4].map((n) => `Person ${n}: €23.00`));
  });

  it('shares every cent, the larger shares first', async () => {
    render(Component);
    await fill({ Bill: '10.01', 'Tip %': '0', People: '3' });
    expect(shares()).toEqual(['Person 1: $3.34', 'Person 2: $3.34', 'Person 3: $3.33']);
    await fill({ Bill: '0.02' });
    expect(shares()).toEqual(['Person 1: $0.01', 'Person 2: $0.01', 'Person 3: $0.00']);
  });

  it('rounds the total up into the tip, and leaves a whole total alone', async () => {
    const user = userEvent.setup();
    render(Component);
    await fill({ Bill: '19.99' });
    expect(screen.getByTestId('total')).toHaveTextContent('$21.99');
    await user.click(screen.getByLabelText('Round up'));
    expect(screen.getByTestId('total')).toHaveTextContent('$22.00');
    expect(screen.getByTestId('tip')).toHaveTextContent('$2.01');
    await fill({ Bill: '20' });
    expect(screen.getByTestId('total')).toHaveTextContent('$22.00');
    expect(screen.getByTestId('tip')).toHaveTextContent('$2.00');
  });

  it('takes an empty tip as zero and needs a whole number of people', async () => {
    render(Component);
    await fill({ Bill: '9', 'Tip %': '' });
    expect(screen.getByTestId('total')).toHaveTextContent('$9.00');
    for (const people of ['', '0', '2.5']) {
      await fill({ People: people });
      expect(screen.getByRole('alert')).toHaveTextContent('At least one person, please');
      expect(screen.getByTestId('total')).toHaveTextContent(/^–$/);
      expect(screen.queryByRole('list', { name: 'Shares' })).not.toBeInTheDocument();
    }
    await fill({ People: '1' });
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
    expect(shares()).toEqual(['Person 1: $9.00']);
  });

  it('refuses negative amounts before it looks at the people', async () => {
    render(Component);
    await fill({ Bill: '-5', People: '0' });
    expect(screen.getAllByRole('alert')).toHaveLength(1);
    expect(screen.getByRole('alert')).toHaveTextContent('Amounts cannot be negative');
    expect(screen.getByTestId('tip')).toHaveTextContent(/^–$/);
    await fill({ Bill: '5', 'Tip %': '-1', People: '2' });
    expect(screen.getByRole('alert')).toHaveTextContent('Amounts cannot be negative');
  });
});
