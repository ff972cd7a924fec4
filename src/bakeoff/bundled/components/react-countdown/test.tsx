import { act, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import Countdown from './Component';

const press = (name: string) => fireEvent.click(screen.getByRole('button', { name }));
const left = () => screen.getByRole('timer').textContent;

function wait(seconds: number) {
  for (let second = 0; second < seconds; second++) act(() => void vi.advanceTimersByTime(1000));
}

describe('countdown', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('shows the time and waits for the start', () => {
    render(<Countdown seconds={65} />);
    expect(left()).toBe('1:05');
    wait(3);
    expect(left()).toBe('1:05');
    expect(screen.getByRole('button', { name: 'Start' })).toBeInTheDocument();
    expect(screen.getByRole('button', { name: 'Reset' })).toBeDisabled();
  });

  it('takes one second away every second', () => {
    render(<Countdown seconds={720} />);
    expect(left()).toBe('12:00');
    press('Start');
    act(() => void vi.advanceTimersByTime(999));
    expect(left()).toBe('12:00');
    act(() => void vi.advanceTimersByTime(1));
    expect(left()).toBe('11:59');
    wait(2);
    expect(left()).toBe('11:57');
  });

  it('pauses and goes on', () => {
    render(<Countdown seconds={30} />);
    press('Start');
    wait(4);
    press('Pause');
    expect(vi.getTimerCount()).toBe(0);
    wait(5);
    expect(left()).toBe('0:26');
    press('Resume');
    wait(1);
    expect(left()).toBe('0:25');
    expect(screen.getByRole('button', { name: 'Pause' })).toBeInTheDocument();
  });

  it('ends at zero', () => {
    const onDone = vi.fn();
    render(<Countdown seconds={2} onDone={onDone} />);
    press('Start');
    wait(1);
    expect(onDone).not.toHaveBeenCalled();
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
    wait(1);
    expect(left()).toBe('0:00');
    expect(screen.getByRole('alert')).toHaveTextContent(/^Time is up$/);
    expect(screen.getAllByRole('button')).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
    wait(3);
    expect(onDone).toHaveBeenCalledTimes(1);
    expect(left()).toBe('0:00');
  });

  it('goes back to the beginning', () => {
    render(<Countdown seconds={9} />);
    press('Start');
    wait(2);
    expect(left()).toBe('0:07');
    press('Reset');
    wait(2);
    expect(left()).toBe('0:09');
    expect(screen.getByRole('button', { name: 'Start' })).toBeInTheDocument();
    expect(screen.getByRole('button', { name: 'Reset' })).toBeDisabled();
  });

  it('can be used again after it ended', () => {
    render(<Countdown seconds={1} />);
    press('Start');
    wait(1);
    press('Reset');
    expect(left()).toBe('0:01');
    press('Start');
    wait(1);
    expect(left()).toBe('0:00');
  });

  it('leaves no timer behind', () => {
    const { unmount } = render(<Countdown seconds={5} />);
    press('Start');
    expect(vi.getTimerCount()).toBe(1);
    unmount();
    expect(vi.getTimerCount()).toBe(0);
  });
});
