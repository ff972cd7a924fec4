import { render, screen, waitFor } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import Component from './Component.svelte';

const field = (label: string) => screen.getByLabelText(label);
const submitButton = () => screen.getByRole('button', { name: 'Create account' });

async function fillIn(overrides: Record<string, string> = {}) {
  const user = userEvent.setup();
  const texts = {
    Email: ' ada@example.org ',
    Password: 'correct horse',
    'Repeat password': 'correct horse',
    ...overrides,
  };
  for (const [label, text] of Object.entries(texts)) await user.type(field(label), text);
  await user.click(field('I accept the terms'));
  return user;
}

function expectError(label: string, message: string) {
  expect(field(label)).toHaveAttribute('aria-invalid', 'true');
  expect(field(label)).toHaveAccessibleDescription(message);
}

function expectNoError(label: string) {
  expect(field(label)).not.toHaveAttribute('aria-invalid', 'true');
  expect(field(label)).not.toHaveAccessibleDescription();
}

describe('sign-up form', () => {
  it('says nothing about a field until it has been left, then follows the typing', async () => {
    const user = userEvent.setup();
    render(Component, { register: vi.fn() });
    await user.type(field('Email'), 'ada');
    expectNoError('Email');
    await user.tab();
    expectError('Email', 'Enter a valid email address');
    expectNoError('Password');
    await user.type(field('Email'), '@example.org');
    expectNoError('Email');
    await user.type(field('Email'), '@');
    expectError('Email', 'Enter a valid email address');
  });

  it('accepts a password of ten characters and none of nine', async () => {
    const user = userEvent.setup();
    render(Component, { register: vi.fn() });
    await user.type(field('Password'), 'ninechars');
    await user.tab();
    expectError('Password', 'Use at least 10 characters');
    await user.type(field('Password'), '!');
    expectNoError('Password');
  });

  it('shows every error on a submit and puts the focus on the first wrong field', async () => {
    const user = userEvent.setup();
    const register = vi.fn();
    render(Component, { register });
    await user.type(field('Email'), 'ada@example.org');
    await user.type(field('Repeat password'), 'x');
    await user.click(submitButton());
    expectNoError('Email');
    expectError('Password', 'Use at least 10 characters');
    expectError('Repeat password', 'The passwords differ');
    expectError('I accept the terms', 'Please accept the terms');
    await waitFor(() => expect(field('Password')).toHaveFocus());
    expect(register).not.toHaveBeenCalled();
  });

  it('compares the repeated password again when the password changes', async () => {
    const user = userEvent.setup();
    render(Component, { register: vi.fn() });
    await user.type(field('Password'), 'correct hors');
    await user.type(field('Repeat password'), 'correct horse');
    await user.tab();
    expectError('Repeat password', 'The passwords differ');
    await user.type(field('Password'), 'e');
    expectNoError('Repeat password');
  });

  it('sends the trimmed email once and welcomes the user', async () => {
    let answer: (value: { ok: true }) => void = () => {};
    const register = vi.fn(() => new Promise<{ ok: true }>((resolve) => (answer = resolve)));
    render(Component, { register });
    const user = await fillIn();
    await user.click(submitButton());
    expect(screen.getByRole('button', { name: 'Creating account…' })).toBeDisabled();
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
    await user.type(field('Email'), '{Enter}');
    (field('Email') as HTMLInputElement).form?.dispatchEvent(
      new SubmitEvent('submit', { bubbles: true, cancelable: true }),
    );
    expect(register.mock.calls).toEqual([[{ email: 'ada@example.org', password: 'correct horse' }]]);
    answer({ ok: true });
    expect(await screen.findByRole('status')).toHaveTextContent(/^Welcome, ada@example\.org!$/);
    expect(screen.queryByLabelText('Email')).not.toBeInTheDocument();
  });

  it('shows what the server refused at its field until that field is edited', async () => {
    const register = vi.fn(async () => ({ ok: false as const, field: 'email' as const, message: 'Already taken' }));
    render(Component, { register });
    const user = await fillIn();
    await user.click(submitButton());
    await waitFor(() => expectError('Email', 'Already taken'));
    await waitFor(() => expect(field('Email')).toHaveFocus());
    expect(submitButton()).toBeEnabled();
    await user.type(field('Password'), '!');
    expectError('Email', 'Already taken');
    await user.type(field('Email'), 'x');
    expectNoError('Email');
  });

  it('survives a failing server and can be sent again', async () => {
    const register = vi.fn().mockRejectedValueOnce(new Error('boom')).mockResolvedValueOnce({ ok: true });
    render(Component, { register });
    const user = await fillIn();
    await user.click(submitButton());
    expect(await screen.findByRole('alert')).toHaveTextContent('Something went wrong. Please try again.');
    expect(field('Password')).toHaveValue('correct horse');
    await user.click(submitButton());
    expect(await screen.findByRole('status')).toHaveTextContent('Welcome, ada@example.org!');
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
  });

  it('leaves validation to itself rather than to the browser', () => {
    render(Component, { register: vi.fn() });
    expect((field('Email') as HTMLInputElement).form).toHaveAttribute('novalidate');
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
  });
});
