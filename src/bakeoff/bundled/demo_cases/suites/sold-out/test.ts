import { render, screen } from '@testing-library/svelte';
import { expect, it } from 'vitest';
import Component from './Component.svelte';

it('shows the text', () => {
  render(Component);
  expect(screen.getByText('Sold out')).toBeInTheDocument();
});
