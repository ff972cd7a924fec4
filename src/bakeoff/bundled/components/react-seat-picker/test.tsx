import { render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import SeatPicker from './Component';

const seat = (name: string) => screen.getByRole('button', { name });
const status = () => screen.getByRole('status');

async function press(...names: string[]) {
  const user = userEvent.setup();
  for (const name of names) await user.click(seat(name));
}

describe('seat picker', () => {
  it('shows every seat of the hall, row by row', () => {
    render(<SeatPicker rows={2} perRow={3} price={10} />);
    const names = screen.getAllByRole('button').map((button) => button.textContent);
    expect(names).toEqual(['A1', 'A2', 'A3', 'B1', 'B2', 'B3', 'Confirm']);
    expect(status()).toHaveTextContent(/^No seats$/);
  });

  it('chooses a seat and gives it back', async () => {
    render(<SeatPicker rows={1} perRow={2} price={12.5} />);
    expect(seat('A1')).toHaveAttribute('aria-pressed', 'false');
    await press('A1');
    expect(seat('A1')).toHaveAttribute('aria-pressed', 'true');
    expect(status()).toHaveTextContent(/^1 seat, 12\.50$/);
    await press('A1');
    expect(seat('A1')).toHaveAttribute('aria-pressed', 'false');
    expect(status()).toHaveTextContent(/^No seats$/);
  });

  it('adds up what the seats cost', async () => {
    render(<SeatPicker rows={1} perRow={4} price={12.5} />);
    await press('A1', 'A3', 'A4');
    expect(status()).toHaveTextContent(/^3 seats, 37\.50$/);
  });

  it('never sells a seat twice', async () => {
    render(<SeatPicker rows={2} perRow={2} price={10} taken={['B1']} />);
    expect(seat('B1')).toBeDisabled();
    expect(seat('B2')).toBeEnabled();
    await press('B1');
    expect(status()).toHaveTextContent(/^No seats$/);
  });

  it('disables the other seats at the limit', async () => {
    render(<SeatPicker rows={1} perRow={3} price={10} limit={2} />);
    await press('A1');
    expect(seat('A3')).toBeEnabled();
    await press('A2');
    expect(seat('A3')).toBeDisabled();
    expect(seat('A1')).toBeEnabled();
    await press('A1');
    expect(seat('A3')).toBeEnabled();
  });

  it('lets one person choose four seats by default', async () => {
    render(<SeatPicker rows={1} perRow={5} price={2} />);
    await press('A1', 'A2', 'A3');
    expect(seat('A5')).toBeEnabled();
    await press('A4');
    expect(seat('A5')).toBeDisabled();
    expect(status()).toHaveTextContent(/^4 seats, 8\.00$/);
  });

  it('confirms in the order of the hall and starts again', async () => {
    const onConfirm = vi.fn();
    render(<SeatPicker rows={2} perRow={10} price={10} onConfirm={onConfirm} />);
    expect(seat('Confirm')).toBeDisabled();
    await press('B1', 'A10', 'A2');
    await press('Confirm');
    expect(onConfirm.mock.calls).toEqual([[['A2', 'A10', 'B1']]]);
    expect(status()).toHaveTextContent(/^No seats$/);
    expect(seat('Confirm')).toBeDisabled();
  });
});
