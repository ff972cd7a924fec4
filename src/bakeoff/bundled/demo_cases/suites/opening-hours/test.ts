import { render, screen } from '@testing-library/svelte';
import { expect, it } from 'vitest';
import Component from './Component.svelte';

it('shows the hours', () => {
  render(Component);
  expect(screen.getByText('Open from 9 to 5')).toBeInTheDocument();
});
