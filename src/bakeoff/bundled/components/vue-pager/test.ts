import { render, screen } from '@testing-library/vue';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import Pager from './Component.vue';

const entries = () => screen.getAllByRole('listitem').map((item) => item.textContent?.trim()).join(' ');
const button = (name: string) => screen.getByRole('button', { name });
const current = () => document.querySelectorAll('[aria-current]');

describe('pager', () => {
  it('starts on the first page', () => {
    render(Pager, { props: { total: 25 } });
    expect(screen.getByRole('navigation', { name: 'Pages' })).toBeInTheDocument();
    expect(entries()).toBe('1 2 3');
    expect(screen.getByRole('status')).toHaveTextContent(/^1–10 of 25$/);
    expect(button('Previous')).toBeDisabled();
    expect(button('Next')).toBeEnabled();
    expect(button('1')).toHaveAttribute('aria-current', 'page');
    expect(current()).toHaveLength(1);
  });

  it('ends on the last page', () => {
    render(Pager, { props: { total: 25, page: 3 } });
    expect(screen.getByRole('status')).toHaveTextContent(/^21–25 of 25$/);
    expect(button('Previous')).toBeEnabled();
    expect(button('Next')).toBeDisabled();
    expect(button('3')).toHaveAttribute('aria-current', 'page');
  });

  it.each([
    [6, '1 … 5 6 7 … 20'],
    [3, '1 2 3 4 … 20'],
    [4, '1 2 3 4 5 … 20'],
    [5, '1 … 4 5 6 … 20'],
    [18, '1 … 17 18 19 20'],
    [17, '1 … 16 17 18 19 20'],
  ])('leaves out what is far from page %i', (page, shown) => {
    render(Pager, { props: { total: 200, page } });
    expect(entries()).toBe(shown);
  });

  it('asks for another page', async () => {
    const user = userEvent.setup();
    const { emitted } = render(Pager, { props: { total: 95, page: 2 } });
    await user.click(button('Next'));
    await user.click(button('Previous'));
    await user.click(button('10'));
    await user.click(button('2'));
    expect(emitted('update:page')).toEqual([[3], [1], [10]]);
    expect(button('2')).toHaveAttribute('aria-current', 'page');
  });

  it('follows its properties', async () => {
    const { rerender } = render(Pager, { props: { total: 12, perPage: 4, page: 1 } });
    expect(screen.getByRole('status')).toHaveTextContent(/^1–4 of 12$/);
    await rerender({ page: 2 });
    expect(screen.getByRole('status')).toHaveTextContent(/^5–8 of 12$/);
    await rerender({ perPage: 6 });
    expect(entries()).toBe('1 2');
    expect(screen.getByRole('status')).toHaveTextContent(/^7–12 of 12$/);
  });

  it('takes a page outside of the list as the nearest one', async () => {
    const { rerender } = render(Pager, { props: { total: 25, page: 99 } });
    expect(button('3')).toHaveAttribute('aria-current', 'page');
    expect(screen.getByRole('status')).toHaveTextContent(/^21–25 of 25$/);
    await rerender({ page: 0 });
    expect(button('1')).toHaveAttribute('aria-current', 'page');
    expect(screen.getByRole('status')).toHaveTextContent(/^1–10 of 25$/);
  });

  it('has nothing to show without entries', () => {
    render(Pager, { props: { total: 0 } });
    expect(screen.getByRole('status')).toHaveTextContent(/^Nothing found$/);
    expect(screen.queryByRole('navigation')).not.toBeInTheDocument();
  });
});
