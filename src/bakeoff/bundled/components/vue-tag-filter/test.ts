import { render, screen, within } from '@testing-library/vue';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import TagFilter from './Component.vue';

const RECIPES = [
  { name: 'Lentil soup', tags: ['vegan', 'soup'] },
  { name: 'Fish soup', tags: ['fish', 'soup'] },
  { name: 'Baked carrots', tags: ['vegan'] },
  { name: 'Pancakes', tags: ['quick'] },
  { name: 'Quick salad', tags: ['quick', 'vegan'] },
];

const tag = (name: string) => screen.getByRole('button', { name });
const shown = () => screen.queryAllByRole('listitem').map((item) => item.textContent);

async function press(...names: string[]) {
  const user = userEvent.setup();
  for (const name of names) await user.click(tag(name));
}

describe('tag filter', () => {
  it('shows every tag once, with its recipes counted', () => {
    render(TagFilter, { props: { recipes: RECIPES } });
    const buttons = within(screen.getByRole('group', { name: 'Tags' })).getAllByRole('button');
    expect(buttons.map((each) => each.textContent?.trim())).toEqual(['fish (1)', 'quick (2)', 'soup (2)', 'vegan (3)']);
    expect(tag('soup (2)')).toHaveAttribute('aria-pressed', 'false');
  });

  it('shows all recipes at the start', () => {
    render(TagFilter, { props: { recipes: RECIPES } });
    expect(shown()).toEqual(['Lentil soup', 'Fish soup', 'Baked carrots', 'Pancakes', 'Quick salad']);
    expect(screen.getByRole('status')).toHaveTextContent(/^5 of 5 recipes$/);
    expect(screen.getByRole('radio', { name: 'Any' })).toBeChecked();
    expect(tag('Clear')).toBeDisabled();
  });

  it('shows what has any of the tags', async () => {
    render(TagFilter, { props: { recipes: RECIPES } });
    await press('soup (2)');
    expect(tag('soup (2)')).toHaveAttribute('aria-pressed', 'true');
    expect(shown()).toEqual(['Lentil soup', 'Fish soup']);
    await press('quick (2)');
    expect(shown()).toEqual(['Lentil soup', 'Fish soup', 'Pancakes', 'Quick salad']);
    expect(screen.getByRole('status')).toHaveTextContent(/^4 of 5 recipes$/);
  });

  it('shows what has all of the tags', async () => {
    const user = userEvent.setup();
    render(TagFilter, { props: { recipes: RECIPES } });
    await user.click(screen.getByRole('radio', { name: 'All' }));
    expect(shown()).toHaveLength(5);
    await press('vegan (3)', 'quick (2)');
    expect(shown()).toEqual(['Quick salad']);
    await press('fish (1)');
    expect(shown()).toEqual([]);
    expect(screen.getByRole('status')).toHaveTextContent(/^0 of 5 recipes$/);
  });

  it('gives a tag back', async () => {
    render(TagFilter, { props: { recipes: RECIPES } });
    await press('fish (1)', 'quick (2)', 'fish (1)');
    expect(tag('fish (1)')).toHaveAttribute('aria-pressed', 'false');
    expect(shown()).toEqual(['Pancakes', 'Quick salad']);
  });

  it('clears the tags and nothing else', async () => {
    const user = userEvent.setup();
    render(TagFilter, { props: { recipes: RECIPES } });
    await user.click(screen.getByRole('radio', { name: 'All' }));
    await press('fish (1)');
    expect(tag('Clear')).toBeEnabled();
    await press('Clear');
    expect(shown()).toHaveLength(5);
    expect(screen.getByRole('radio', { name: 'All' })).toBeChecked();
    expect(tag('Clear')).toBeDisabled();
  });

  it('forgets a tag that is gone', async () => {
    const { rerender } = render(TagFilter, { props: { recipes: RECIPES } });
    await press('fish (1)');
    await rerender({ recipes: RECIPES.slice(2) });
    expect(shown()).toEqual(['Baked carrots', 'Pancakes', 'Quick salad']);
    expect(tag('Clear')).toBeDisabled();
    await press('vegan (2)');
    expect(shown()).toEqual(['Baked carrots', 'Quick salad']);
  });
});
