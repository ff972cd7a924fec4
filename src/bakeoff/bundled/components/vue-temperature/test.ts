import { render, screen } from '@testing-library/vue';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import Temperature from './Component.vue';

const celsius = () => screen.getByLabelText('Celsius');
const fahrenheit = () => screen.getByLabelText('Fahrenheit');

async function fill(field: HTMLElement, text: string) {
  const user = userEvent.setup();
  await user.clear(field);
  if (text) await user.type(field, text);
}

describe('temperature', () => {
  it('starts at room temperature', () => {
    render(Temperature);
    expect(celsius()).toHaveValue('20');
    expect(fahrenheit()).toHaveValue('68');
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
  });

  it('starts where it is told to', () => {
    render(Temperature, { props: { celsius: 36.66 } });
    expect(celsius()).toHaveValue('36.7');
    expect(fahrenheit()).toHaveValue('98');
  });

  it.each([
    ['22', '71.6'],
    ['36,6', '97.9'],
    ['-40', '-40'],
    ['0.25', '32.5'],
  ])('converts %s degrees Celsius', async (typed, converted) => {
    render(Temperature);
    await fill(celsius(), typed);
    expect(celsius()).toHaveValue(typed);
    expect(fahrenheit()).toHaveValue(converted);
  });

  it.each([
    ['212', '100'],
    ['98.6', '37'],
    ['1', '-17.2'],
  ])('converts %s degrees Fahrenheit', async (typed, converted) => {
    render(Temperature);
    await fill(fahrenheit(), typed);
    expect(fahrenheit()).toHaveValue(typed);
    expect(celsius()).toHaveValue(converted);
  });

  it('says that a text is no number', async () => {
    render(Temperature);
    await fill(celsius(), 'warm');
    expect(screen.getByRole('alert')).toHaveTextContent(/^Not a number$/);
    expect(fahrenheit()).toHaveValue('');
    await fill(fahrenheit(), '50');
    expect(celsius()).toHaveValue('10');
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
  });

  it('empties the other field without an alert', async () => {
    render(Temperature);
    await fill(celsius(), '');
    expect(fahrenheit()).toHaveValue('');
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
  });

  it('knows absolute zero on both scales', async () => {
    render(Temperature);
    await fill(celsius(), '-273.15');
    expect(fahrenheit()).toHaveValue('-459.7');
    await fill(celsius(), '-273.16');
    expect(screen.getByRole('alert')).toHaveTextContent(/^Below absolute zero$/);
    expect(fahrenheit()).toHaveValue('');
    await fill(fahrenheit(), '-459.67');
    expect(celsius()).toHaveValue('-273.1');
    await fill(fahrenheit(), '-459.68');
    expect(screen.getByRole('alert')).toHaveTextContent(/^Below absolute zero$/);
    expect(celsius()).toHaveValue('');
  });

  it('jumps to the freezing point', async () => {
    const user = userEvent.setup();
    render(Temperature);
    await fill(fahrenheit(), 'cold');
    await user.click(screen.getByRole('button', { name: 'Freezing point' }));
    expect(celsius()).toHaveValue('0');
    expect(fahrenheit()).toHaveValue('32');
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
  });
});
