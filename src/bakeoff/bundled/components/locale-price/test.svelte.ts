import { render, screen } from '@testing-library/svelte';
import { createRawSnippet, flushSync } from 'svelte';
import { describe, expect, it } from 'vitest';
import Component from './Component.svelte';

interface Locale {
  language: string;
  currency: string;
  convert?: (cents: number, to: string) => number;
}

const money = (language: string, currency: string, amount: number) =>
  new Intl.NumberFormat(language, { style: 'currency', currency }).format(amount);

function show(props: Record<string, unknown>, locale?: Locale) {
  const context = new Map(locale ? [['locale', locale]] : []);
  return render(Component, { props: { cents: 0, ...props }, context });
}

const text = (testId: string) => screen.getByTestId(testId).textContent;

describe('price tag', () => {
  it('uses American dollars where there is no context', async () => {
    const { rerender } = show({ cents: 123456 });
    expect(text('price')).toBe('$1,234.56');
    expect(screen.queryByTestId('was')).not.toBeInTheDocument();
    expect(screen.queryByTestId('discount')).not.toBeInTheDocument();
    await rerender({ cents: 5 });
    expect(text('price')).toBe('$0.05');
  });

  it('follows language and currency as they change', () => {
    const locale = $state<Locale>({ language: 'de-DE', currency: 'EUR' });
    show({ cents: 250000 }, locale);
    expect(text('price')).toBe(money('de-DE', 'EUR', 2500));
    flushSync(() => (locale.language = 'en-GB'));
    expect(text('price')).toBe(money('en-GB', 'EUR', 2500));
    flushSync(() => (locale.currency = 'GBP'));
    expect(text('price')).toBe(money('en-GB', 'GBP', 2500));
  });

  it('converts both prices but not the discount', () => {
    const locale = $state<Locale>({ language: 'en-US', currency: 'EUR', convert: (cents) => cents / 2 - 100 });
    show({ cents: 3000, was: 4000 }, locale);
    expect(text('price')).toBe('€14.00');
    expect(text('was')).toBe('€19.00');
    expect(screen.getByTestId('was').tagName).toBe('DEL');
    expect(text('discount')).toBe('−25%');
    flushSync(() => (locale.convert = undefined));
    expect(text('price')).toBe('€30.00');
  });

  it('shows a discount only for a price that fell', async () => {
    const { rerender } = show({ cents: 200, was: 300 });
    expect(text('discount')).toBe('−33%');
    await rerender({ was: 200 });
    expect(screen.queryByTestId('was')).not.toBeInTheDocument();
    await rerender({ cents: 0, was: 100 });
    expect(text('discount')).toBe('−100%');
    await rerender({ was: undefined });
    expect(screen.queryByTestId('discount')).not.toBeInTheDocument();
  });

  it('lets a snippet draw the discount and keeps it current', async () => {
    const badge = createRawSnippet<[number]>((percent) => ({
      render: () => '<mark></mark>',
      setup(node) {
        $effect(() => {
          node.textContent = `save ${percent()}`;
        });
      },
    }));
    const { rerender } = show({ cents: 90, was: 100, badge });
    expect(screen.getByText('save 10')).toBeInTheDocument();
    expect(screen.queryByTestId('discount')).not.toBeInTheDocument();
    await rerender({ cents: 50 });
    expect(screen.getByText('save 50')).toBeInTheDocument();
    await rerender({ cents: 100 });
    expect(screen.queryByText(/save/)).not.toBeInTheDocument();
  });

  it('falls back to dollars while conversion fails', () => {
    const convert = (cents: number, to: string) => {
      if (to === 'XAU') throw new Error('no rate');
      return cents * 2;
    };
    const locale = $state<Locale>({ language: 'fr-FR', currency: 'XAU', convert });
    show({ cents: 1000, was: 2000 }, locale);
    expect(text('price')).toBe(money('fr-FR', 'USD', 10));
    expect(text('was')).toBe(money('fr-FR', 'USD', 20));
    flushSync(() => (locale.currency = 'EUR'));
    expect(text('price')).toBe(money('fr-FR', 'EUR', 20));
    expect(text('was')).toBe(money('fr-FR', 'EUR', 40));
  });
});
