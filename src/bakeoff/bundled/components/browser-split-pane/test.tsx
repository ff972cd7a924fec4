import { fireEvent, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import type { ComponentProps } from 'react';
import SplitPane from './Component';

const box = (id: string) => screen.getByTestId(id).getBoundingClientRect();
const divider = () => screen.getByRole('separator');
const widths = () => [box('start').width, divider().getBoundingClientRect().width, box('end').width].map(Math.round);

function show(width: number, props: Partial<ComponentProps<typeof SplitPane>> = {}) {
  render(
    <div data-testid="around" style={{ width }}>
      <SplitPane start="left" end="right" {...props} />
    </div>,
  );
}

async function press(...keys: string[]) {
  const user = userEvent.setup();
  divider().focus();
  for (const key of keys) await user.keyboard(`{${key}}`);
}

function drag(from: number, to: number) {
  const at = (clientX: number) => ({ clientX, clientY: 50, pointerId: 1, buttons: 1 });
  divider().setPointerCapture = () => undefined; // the pointer of a test is no real one
  fireEvent.pointerDown(divider(), at(from));
  fireEvent.pointerMove(divider(), at((from + to) / 2));
  fireEvent.pointerMove(divider(), at(to));
  fireEvent.pointerUp(divider(), at(to));
}

describe('split pane', () => {
  it('shares the width equally', () => {
    show(608);
    expect(widths()).toEqual([300, 8, 300]);
    expect(divider()).toHaveAttribute('aria-valuenow', '50');
    expect(divider()).toHaveAttribute('aria-orientation', 'vertical');
  });

  it('is as high as it should be, and the views with it', () => {
    show(608);
    expect(box('start').height).toBe(200);
    expect(box('end').height).toBe(200);
    expect(box('around').height).toBe(200);
  });

  it('stands from left to right without gaps', () => {
    show(408);
    const middle = divider().getBoundingClientRect();
    expect(middle.left - box('start').left).toBe(200);
    expect(box('end').left - box('start').left).toBe(208);
    expect(box('around').width).toBe(408);
  });

  it('keeps large content inside of its view', () => {
    show(408, { start: <div style={{ width: 900, height: 700 }}>large</div> });
    expect(widths()).toEqual([200, 8, 200]);
    expect(box('around').height).toBe(200);
    expect(screen.getByTestId('start').scrollHeight).toBe(700);
    expect(screen.getByTestId('start').scrollWidth).toBe(900);
  });

  it('moves by the arrow keys', async () => {
    show(608);
    await press('ArrowRight', 'ArrowRight', 'ArrowRight');
    expect(widths()).toEqual([330, 8, 270]);
    expect(divider()).toHaveAttribute('aria-valuenow', '55');
    await press('ArrowLeft', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft');
    expect(widths()).toEqual([290, 8, 310]);
  });

  it('goes as far as the views allow', async () => {
    show(608);
    await press('Home');
    expect(widths()).toEqual([80, 8, 520]);
    await press('ArrowLeft');
    expect(widths()).toEqual([80, 8, 520]);
    await press('End');
    expect(widths()).toEqual([520, 8, 80]);
    expect(divider()).toHaveAttribute('aria-valuenow', '87');
  });

  it('is told how small a view may be', async () => {
    show(608, { min: 120 });
    await press('End');
    expect(widths()).toEqual([480, 8, 120]);
  });

  it('follows the pointer while it is held', () => {
    show(608);
    drag(304, 404);
    expect(widths()).toEqual([400, 8, 200]);
    fireEvent.pointerMove(divider(), { clientX: 500, clientY: 50, pointerId: 1 });
    expect(widths()).toEqual([400, 8, 200]);
    drag(404, 0);
    expect(widths()).toEqual([80, 8, 520]);
  });
});
