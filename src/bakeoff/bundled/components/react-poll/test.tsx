import { render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import Poll from './Component';

const DRINKS = [
  { id: 't', label: 'Tea', votes: 0 },
  { id: 'c', label: 'Coffee', votes: 2 },
  { id: 'w', label: 'Water', votes: 1 },
];

async function vote(label: string) {
  const user = userEvent.setup();
  await user.click(screen.getByRole('radio', { name: label }));
  await user.click(screen.getByRole('button', { name: 'Vote' }));
}

const results = () => screen.getAllByRole('listitem').map((item) => item.textContent);

describe('poll', () => {
  it('asks its question, with nothing chosen', () => {
    render(<Poll question="What do you drink?" options={DRINKS} />);
    expect(screen.getByRole('radiogroup', { name: 'What do you drink?' })).toBeInTheDocument();
    expect(screen.getAllByRole('radio')).toHaveLength(3);
    expect(screen.getByRole('radio', { name: 'Water' })).not.toBeChecked();
    expect(screen.getByRole('button', { name: 'Vote' })).toBeDisabled();
    expect(screen.queryByRole('list')).not.toBeInTheDocument();
  });

  it('lets readers change their mind before they vote', async () => {
    const user = userEvent.setup();
    render(<Poll question="Drink?" options={DRINKS} />);
    await user.click(screen.getByRole('radio', { name: 'Tea' }));
    await user.click(screen.getByRole('radio', { name: 'Water' }));
    expect(screen.getByRole('radio', { name: 'Water' })).toBeChecked();
    expect(screen.getByRole('radio', { name: 'Tea' })).not.toBeChecked();
    expect(screen.getByRole('button', { name: 'Vote' })).toBeEnabled();
  });

  it('counts the vote and shows the most votes first', async () => {
    render(<Poll question="Drink?" options={DRINKS} />);
    await vote('Coffee');
    expect(results()).toEqual(['Coffee: 3 votes (75 %)', 'Water: 1 vote (25 %)', 'Tea: 0 votes (0 %)']);
    expect(screen.queryByRole('radio')).not.toBeInTheDocument();
    expect(screen.queryByRole('button', { name: 'Vote' })).not.toBeInTheDocument();
  });

  it('keeps the given order where votes are equal, and rounds', async () => {
    const options = [
      { id: '1', label: 'One', votes: 1 },
      { id: '2', label: 'Two', votes: 0 },
      { id: '3', label: 'Three', votes: 1 },
    ];
    render(<Poll question="Number?" options={options} />);
    await vote('Two');
    expect(results()).toEqual(['One: 1 vote (33 %)', 'Two: 1 vote (33 %)', 'Three: 1 vote (33 %)']);
  });

  it('marks the own vote alone', async () => {
    render(<Poll question="Drink?" options={DRINKS} />);
    await vote('Tea');
    const [coffee, tea, water] = screen.getAllByRole('listitem');
    expect(tea).toHaveAttribute('aria-current', 'true');
    expect(tea).toHaveTextContent('Tea: 1 vote (25 %)');
    expect(coffee).not.toHaveAttribute('aria-current');
    expect(water).not.toHaveAttribute('aria-current');
  });

  it('tells about each vote', async () => {
    const onVote = vi.fn();
    render(<Poll question="Drink?" options={DRINKS} onVote={onVote} />);
    expect(onVote).not.toHaveBeenCalled();
    await vote('Water');
    expect(onVote.mock.calls).toEqual([['w']]);
  });

  it('takes a vote back', async () => {
    const user = userEvent.setup();
    render(<Poll question="Drink?" options={DRINKS} />);
    await vote('Water');
    await user.click(screen.getByRole('button', { name: 'Change vote' }));
    expect(screen.getByRole('radio', { name: 'Water' })).not.toBeChecked();
    expect(screen.getByRole('button', { name: 'Vote' })).toBeDisabled();
    await vote('Tea');
    expect(results()).toEqual(['Coffee: 2 votes (50 %)', 'Tea: 1 vote (25 %)', 'Water: 1 vote (25 %)']);
  });
});
