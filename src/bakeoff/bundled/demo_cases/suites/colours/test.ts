import { render, screen } from '@testing-library/svelte';
import { expect, it } from 'vitest';
import Component from './Component.svelte';

it('shows the three colours', () => {
  render(Component);
  for (const colour of ['red', 'green', 'blue']) expect(document.body).toHaveTextContent(colour);
});
