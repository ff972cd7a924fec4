import { render, screen } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { flushSync } from 'svelte';
import { describe, expect, it, vi } from 'vitest';
import Component from './Component.svelte';

interface Profile {
  name: string;
  bio: string;
}
interface Call {
  id: string;
  signal: AbortSignal;
  resolve: (profile: Profile) => void;
  reject: (reason: unknown) => void;
}

/** A server that answers when told to, and ignores every signal. */
function server() {
  const calls: Call[] = [];
  const load = (id: string, signal: AbortSignal) =>
    new Promise<Profile>((resolve, reject) => calls.push({ id, signal, resolve, reject }));
  return { calls, load };
}

const profile = (name: string): Profile => ({ name, bio: `About ${name}` });
const button = (name: string) => screen.getByRole('button', { name });
const loading = () => screen.queryByRole('status');
const heading = () => screen.queryByRole('heading', { level: 2 })?.textContent ?? null;

/** A parent whose props change one by one. */
function show(id: string, load: (id: string, signal: AbortSignal) => Promise<Profile>) {
  const props = $state({ id, load });
  const { unmount } = render(Component, props);
  return { unmount, change: (next: Partial<typeof props>) => flushSync(() => Object.assign(props, next)) };
}

/** Lets every promise that is ready run, and the page follow. */
async function settled() {
  for (let round = 0; round < 10; round += 1) await Promise.resolve();
  flushSync();
}

describe('profile loader', () => {
  it('loads once and shows the profile', async () => {
    const { calls, load } = server();
    show('ada', load);
    expect(loading()).toHaveTextContent('Loading…');
    expect(calls.map((call) => call.id)).toEqual(['ada']);
    calls[0].resolve(profile('Ada'));
    await settled();
    expect(heading()).toBe('Ada');
    expect(screen.getByRole('article')).toHaveTextContent('About Ada');
    expect(loading()).not.toBeInTheDocument();
    expect(calls).toHaveLength(1);
    expect(calls[0].signal.aborted).toBe(false);
  });

  it('forgets the old profile and its late answers when the id changes', async () => {
    const { calls, load } = server();
    const { change } = show('ada', load);
    change({ id: 'bob' });
    expect(calls.map((call) => call.id)).toEqual(['ada', 'bob']);
    expect(calls.map((call) => call.signal.aborted)).toEqual([true, false]);
    calls[1].resolve(profile('Bob'));
    await settled();
    calls[0].resolve(profile('Ada'));
    await settled();
    expect(heading()).toBe('Bob');
    change({ id: 'cyd' });
    expect(heading()).toBeNull();
    expect(loading()).toBeInTheDocument();
    expect(calls[1].signal.aborted).toBe(false);
  });

  it('does not mind a late failure of an old load', async () => {
    const { calls, load } = server();
    const { change } = show('ada', load);
    change({ id: 'bob' });
    calls[0].reject(new DOMException('aborted', 'AbortError'));
    await settled();
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
    expect(loading()).toBeInTheDocument();
    calls[1].reject(new Error('Bob is away'));
    await settled();
    expect(screen.getByRole('alert')).toHaveTextContent('Bob is away');
    change({ id: 'cyd' });
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
    expect(loading()).toBeInTheDocument();
  });

  it('starts a load for nothing but a new id', async () => {
    const { calls, load } = server();
    let token = $state('first');
    const seen: string[] = [];
    const reading = (id: string, signal: AbortSignal) => {
      seen.push(token);
      return load(id, signal);
    };
    const { change } = show('ada', reading);
    flushSync(() => (token = 'second'));
    await settled();
    const other = server();
    change({ load: other.load });
    expect(seen).toEqual(['first']);
    expect(calls[0].signal.aborted).toBe(false);
    expect(other.calls).toHaveLength(0);
    calls[0].resolve(profile('Ada'));
    await settled();
    expect(heading()).toBe('Ada');
    change({ id: 'bob' });
    expect(other.calls.map((call) => call.id)).toEqual(['bob']);
    expect(calls).toHaveLength(1);
  });

  it('tries again after a failure, also one that was thrown at once', async () => {
    const user = userEvent.setup();
    const { calls, load } = server();
    const first = vi.fn(load).mockImplementationOnce(() => {
      throw new Error('No network');
    });
    show('ada', first);
    await settled();
    expect(screen.getByRole('alert')).toHaveTextContent('No network');
    expect(loading()).not.toBeInTheDocument();
    await user.click(button('Try again'));
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
    expect(loading()).toBeInTheDocument();
    calls[0].resolve(profile('Ada'));
    await settled();
    expect(heading()).toBe('Ada');
    expect(first).toHaveBeenCalledTimes(2);
  });

  it('keeps the profile while it refreshes, and when that fails', async () => {
    const user = userEvent.setup();
    const { calls, load } = server();
    show('ada', load);
    calls[0].resolve(profile('Ada'));
    await settled();
    expect(screen.getByRole('article')).not.toHaveAttribute('aria-busy', 'true');
    await user.click(button('Refresh'));
    expect(heading()).toBe('Ada');
    expect(screen.getByRole('article')).toHaveAttribute('aria-busy', 'true');
    expect(button('Refresh')).toBeDisabled();
    calls[1].reject(new Error('boom'));
    await settled();
    expect(heading()).toBe('Ada');
    expect(screen.getByRole('alert')).toHaveTextContent('Could not refresh');
    await user.click(button('Refresh'));
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
    calls[2].resolve(profile('Ada Lovelace'));
    await settled();
    expect(heading()).toBe('Ada Lovelace');
    expect(button('Refresh')).toBeEnabled();
  });

  it('drops a refresh when the id changes under it', async () => {
    const user = userEvent.setup();
    const { calls, load } = server();
    const { change } = show('ada', load);
    calls[0].resolve(profile('Ada'));
    await settled();
    await user.click(button('Refresh'));
    change({ id: 'bob' });
    expect(calls.map((call) => call.signal.aborted)).toEqual([false, true, false]);
    expect(heading()).toBeNull();
    calls[1].resolve(profile('Ada again'));
    await settled();
    expect(heading()).toBeNull();
    expect(loading()).toBeInTheDocument();
  });

  it('aborts what runs when it is removed, and only that', async () => {
    const user = userEvent.setup();
    const { calls, load } = server();
    const first = show('ada', load);
    first.unmount();
    expect(calls[0].signal.aborted).toBe(true);
    const second = show('bob', load);
    calls[1].resolve(profile('Bob'));
    await settled();
    await user.click(button('Refresh'));
    second.unmount();
    expect(calls.map((call) => call.signal.aborted)).toEqual([true, false, true]);
  });
});
