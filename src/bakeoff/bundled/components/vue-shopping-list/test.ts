import { render, screen } from '@testing-library/vue';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import ShoppingList from './Component.vue';

const names = () => screen.queryAllByRole('checkbox').map((box) => box.closest('label')?.textContent?.trim());
const field = () => screen.getByLabelText('Item');
const status = () => screen.getByRole('status');

describe('shopping list', () => {
  it('is empty at the start', () => {
    render(ShoppingList);
    expect(names()).toEqual([]);
    expect(status()).toHaveTextContent(/^Nothing to buy$/);
    expect(screen.queryByRole('button', { name: 'Remove bought' })).not.toBeInTheDocument();
  });

  it('shows what it is given', () => {
    render(ShoppingList, { props: { initial: ['milk', 'bread'] } });
    expect(names()).toEqual(['milk', 'bread']);
    expect(screen.getByRole('checkbox', { name: 'bread' })).not.toBeChecked();
    expect(status()).toHaveTextContent(/^2 of 2 left$/);
  });

  it('adds items at the end, by the button and by Enter', async () => {
    const user = userEvent.setup();
    const { emitted } = render(ShoppingList, { props: { initial: ['milk'] } });
    await user.type(field(), '  red apples ');
    await user.click(screen.getByRole('button', { name: 'Add' }));
    expect(field()).toHaveValue('');
    await user.type(field(), 'eggs{Enter}');
    expect(names()).toEqual(['milk', 'red apples', 'eggs']);
    expect(emitted('change')).toEqual([[['milk', 'red apples']], [['milk', 'red apples', 'eggs']]]);
  });

  it('ignores an empty name', async () => {
    const user = userEvent.setup();
    const { emitted } = render(ShoppingList, { props: { initial: ['milk'] } });
    await user.type(field(), '   {Enter}');
    expect(names()).toEqual(['milk']);
    expect(emitted('change')).toBeUndefined();
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
  });

  it('refuses what is already on the list', async () => {
    const user = userEvent.setup();
    const { emitted } = render(ShoppingList, { props: { initial: ['bread', 'Milk'] } });
    await user.type(field(), 'mILK{Enter}');
    expect(screen.getByRole('alert')).toHaveTextContent(/^mILK is already on the list$/);
    expect(field()).toHaveValue('mILK');
    expect(names()).toEqual(['bread', 'Milk']);
    expect(emitted('change')).toBeUndefined();
    await user.type(field(), 'shake{Enter}');
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
    expect(names()).toEqual(['bread', 'Milk', 'mILKshake']);
  });

  it('counts what is left to buy', async () => {
    const user = userEvent.setup();
    const { emitted } = render(ShoppingList, { props: { initial: ['milk', 'bread', 'eggs'] } });
    await user.click(screen.getByRole('checkbox', { name: 'bread' }));
    expect(status()).toHaveTextContent(/^2 of 3 left$/);
    expect(screen.getByRole('button', { name: 'Remove bought' })).toBeInTheDocument();
    await user.click(screen.getByRole('checkbox', { name: 'bread' }));
    expect(status()).toHaveTextContent(/^3 of 3 left$/);
    expect(screen.queryByRole('button', { name: 'Remove bought' })).not.toBeInTheDocument();
    expect(emitted('change')).toBeUndefined();
  });

  it('takes bought items off the list', async () => {
    const user = userEvent.setup();
    const { emitted } = render(ShoppingList, { props: { initial: ['milk', 'bread', 'eggs'] } });
    await user.click(screen.getByRole('checkbox', { name: 'milk' }));
    await user.click(screen.getByRole('checkbox', { name: 'eggs' }));
    await user.click(screen.getByRole('button', { name: 'Remove bought' }));
    expect(names()).toEqual(['bread']);
    expect(status()).toHaveTextContent(/^1 of 1 left$/);
    expect(emitted('change')).toEqual([[['bread']]]);
  });
});
