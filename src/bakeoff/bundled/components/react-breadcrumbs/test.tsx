import { render, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import Breadcrumbs from './Component';

const crumbs = () => screen.getAllByRole('listitem').map((item) => item.textContent);

describe('breadcrumbs', () => {
  it('shows the parts of a path behind Home', () => {
    render(<Breadcrumbs path="/photos/2024/lake" />);
    expect(within(screen.getByRole('navigation', { name: 'Path' })).getByRole('list')).toBeInTheDocument();
    expect(crumbs()).toEqual(['Home', 'photos', '2024', 'lake']);
    expect(screen.getAllByRole('button').map((each) => each.textContent)).toEqual(['Home', 'photos', '2024']);
    expect(screen.getByText('lake')).toHaveAttribute('aria-current', 'page');
  });

  it('has Home alone for the root', () => {
    render(<Breadcrumbs path="/" />);
    expect(crumbs()).toEqual(['Home']);
    expect(screen.getByText('Home')).toHaveAttribute('aria-current', 'page');
    expect(screen.queryByRole('button')).not.toBeInTheDocument();
  });

  it('ignores empty parts and decodes the others', () => {
    render(<Breadcrumbs path="//my%20files/100%/" />);
    expect(crumbs()).toEqual(['Home', 'my files', '100%']);
  });

  it('opens the whole path of a crumb', async () => {
    const user = userEvent.setup();
    const onOpen = vi.fn();
    render(<Breadcrumbs path="/my%20files/2024/lake" onOpen={onOpen} />);
    await user.click(screen.getByRole('button', { name: '2024' }));
    await user.click(screen.getByRole('button', { name: 'my files' }));
    await user.click(screen.getByRole('button', { name: 'Home' }));
    expect(onOpen.mock.calls).toEqual([['/my%20files/2024'], ['/my%20files'], ['/']]);
  });

  it('shortens a long path', () => {
    render(<Breadcrumbs path="/a/b/c/d/e/f" />);
    expect(crumbs()).toEqual(['Home', 'Show 3 more', 'd', 'e', 'f']);
    expect(screen.getByText('f')).toHaveAttribute('aria-current', 'page');
  });

  it('shortens as it is told', () => {
    render(<Breadcrumbs path="/a/b" max={2} />);
    expect(crumbs()).toEqual(['Home', 'Show 1 more', 'b']);
  });

  it('shows all crumbs when asked, until the path changes', async () => {
    const user = userEvent.setup();
    const { rerender } = render(<Breadcrumbs path="/a/b/c/d" />);
    await user.click(screen.getByRole('button', { name: 'Show 1 more' }));
    expect(crumbs()).toEqual(['Home', 'a', 'b', 'c', 'd']);
    rerender(<Breadcrumbs path="/a/b/c/d/e" />);
    expect(crumbs()).toEqual(['Home', 'Show 2 more', 'c', 'd', 'e']);
  });
});
