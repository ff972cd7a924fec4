import { render, screen } from '@testing-library/svelte';
import { expect, it } from 'vitest';
import Component from './Component.svelte';

it('shows the heading', () => {
  render(Component);
  expect(screen.getByRole('heading', { level: 1 })).toHaveTextContent('Welcome');
});
