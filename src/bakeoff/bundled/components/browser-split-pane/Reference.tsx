import { useRef, useState, type CSSProperties, type KeyboardEvent, type PointerEvent, type ReactNode } from 'react';

const DIVIDER = 8;

interface Props {
  start: ReactNode;
  end: ReactNode;
  min?: number;
}

export default function SplitPane({ start, end, min = 80 }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const grabbed = useRef<number | null>(null);
  const [share, setShare] = useState(0.5);

  const room = () => (box.current?.getBoundingClientRect().width ?? 0) - DIVIDER;

  function moveTo(width: number) {
    const whole = room();
    setShare(Math.min(whole - min, Math.max(min, width)) / whole);
  }

  function onKeyDown(event: KeyboardEvent) {
    const width = share * room();
    if (event.key === 'ArrowLeft') moveTo(width - 10);
    else if (event.key === 'ArrowRight') moveTo(width + 10);
    else if (event.key === 'Home') moveTo(0);
    else if (event.key === 'End') moveTo(room());
  }

  function onPointerDown(event: PointerEvent) {
    grabbed.current = event.clientX - share * room();
    event.currentTarget.setPointerCapture(event.pointerId);
  }

  function onPointerMove(event: PointerEvent) {
    if (grabbed.current !== null) moveTo(event.clientX - grabbed.current);
  }

  const view: CSSProperties = { overflow: 'auto', height: '100%', minWidth: 0 };
  return (
    <div ref={box} style={{ display: 'flex', width: '100%', height: 200 }}>
      <div data-testid="start" style={{ ...view, flex: `${share} 1 0px` }}>
        {start}
      </div>
      <div
        role="separator"
        aria-orientation="vertical"
        aria-valuenow={Math.round(100 * share)}
        tabIndex={0}
        style={{ flex: `0 0 ${DIVIDER}px`, cursor: 'col-resize', touchAction: 'none', background: '#8888' }}
        onKeyDown={onKeyDown}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={() => (grabbed.current = null)}
      />
      <div data-testid="end" style={{ ...view, flex: `${1 - share} 1 0px` }}>
        {end}
      </div>
    </div>
  );
}
