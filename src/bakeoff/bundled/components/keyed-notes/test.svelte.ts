import { render, screen, waitFor } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { flushSync } from 'svelte';
import { describe, expect, it } from 'vitest';
import Component from './Component.svelte';

interface Note {
  id: string;
  title: string;
}

/** A parent that binds its notes to the component; arrays and notes are frozen, so that changing them in place fails. */
class Parent {
  notes = $state.raw<Note[]>([]);

  constructor(...titles: string[]) {
    this.assign(titles.map((title) => ({ id: title.toLowerCase(), title })));
    const parent = this;
    render(Component, {
      get notes() {
        return parent.notes;
      },
      set notes(next) {
        parent.notes = next;
      },
    });
  }

  assign(notes: Note[]) {
    this.notes = Object.freeze(notes.map((note) => Object.freeze({ ...note }))) as Note[];
  }

  get order() {
    return this.notes.map((note) => note.title).join('');
  }
}

const button = (name: string) => screen.getByRole('button', { name });
const draft = (title: string) => screen.getByLabelText(`Draft for ${title}`);
const item = (title: string) => draft(title).closest('li');
const shownOrder = () =>
  screen
    .getAllByRole('textbox')
    .map((box) => box.getAttribute('aria-label') ?? (box as HTMLTextAreaElement).labels?.[0]?.textContent ?? '')
    .map((label) => label.trim().replace('Draft for ', ''))
    .join('');

describe('notes that can be reordered', () => {
  it('lists the notes and disables the moves that lead nowhere', () => {
    new Parent('A', 'B', 'C');
    expect(screen.getAllByRole('listitem')).toHaveLength(3);
    expect(button('Move A up')).toBeDisabled();
    expect(button('Move A down')).toBeEnabled();
    expect(button('Move B up')).toBeEnabled();
    expect(button('Move C down')).toBeDisabled();
    expect(screen.getByRole('status')).toHaveTextContent(/^$/);
  });

  it('moves a note, tells the parent and says so', async () => {
    const user = userEvent.setup();
    const parent = new Parent('A', 'B', 'C');
    await user.click(button('Move C up'));
    expect(shownOrder()).toBe('ACB');
    expect(parent.order).toBe('ACB');
    expect(screen.getByRole('status')).toHaveTextContent('Moved C to position 2 of 3');
  });

  it('keeps drafts and elements with their notes, whoever changes the order', async () => {
    const user = userEvent.setup();
    const parent = new Parent('A', 'B', 'C');
    await user.type(draft('A'), 'about a');
    await user.type(draft('C'), 'about c');
    const [a, c] = [item('A'), item('C')];
    await user.click(button('Move A down'));
    expect(draft('A')).toHaveValue('about a');
    flushSync(() => parent.assign([{ id: 'c', title: 'C' }, { id: 'n', title: 'New' }, { id: 'a', title: 'A' }]));
    expect(shownOrder()).toBe('CNewA');
    expect(draft('A')).toHaveValue('about a');
    expect(draft('C')).toHaveValue('about c');
    expect(draft('New')).toHaveValue('');
    expect(item('A')).toBe(a);
    expect(item('C')).toBe(c);
  });

  it('shows a title that the parent changed', () => {
    const parent = new Parent('A', 'B');
    const element = item('B');
    flushSync(() => parent.assign([{ id: 'a', title: 'A' }, { id: 'b', title: 'Bee' }]));
    expect(element).toHaveTextContent('Bee');
    expect(button('Remove Bee')).toBeInTheDocument();
    expect(item('Bee')).toBe(element);
  });

  it('keeps the focus on the button that moved, in both directions', async () => {
    const user = userEvent.setup();
    new Parent('A', 'B', 'C', 'D');
    await user.click(button('Move A down'));
    await waitFor(() => expect(button('Move A down')).toHaveFocus());
    await user.click(button('Move D up'));
    await waitFor(() => expect(button('Move D up')).toHaveFocus());
    await user.keyboard('{Enter}');
    expect(shownOrder()).toBe('BDAC');
    await waitFor(() => expect(button('Move D up')).toHaveFocus());
  });

  it('goes to the other move button when an end is reached', async () => {
    const user = userEvent.setup();
    new Parent('A', 'B', 'C');
    await user.click(button('Move B up'));
    await waitFor(() => expect(button('Move B down')).toHaveFocus());
    await user.click(button('Move A down'));
    await waitFor(() => expect(button('Move A up')).toHaveFocus());
  });

  it('removes notes with the focus on the neighbour, down to none', async () => {
    const user = userEvent.setup();
    const parent = new Parent('A', 'B', 'C');
    await user.click(button('Remove B'));
    expect(screen.getByRole('status')).toHaveTextContent('Removed B');
    await waitFor(() => expect(button('Remove C')).toHaveFocus());
    await user.click(button('Remove C'));
    await waitFor(() => expect(button('Remove A')).toHaveFocus());
    await user.click(button('Remove A'));
    expect(parent.order).toBe('');
    expect(screen.queryByRole('list')).not.toBeInTheDocument();
    expect(screen.getByText('No notes')).toBeInTheDocument();
    expect(screen.getByRole('status')).toHaveTextContent('Removed A');
  });
});
