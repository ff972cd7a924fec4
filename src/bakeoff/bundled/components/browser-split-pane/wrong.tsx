import { useState } from 'react';

export default function SplitPane({ start, end }: any) {
  const [width, setWidth] = useState(200);
  return (
    <div style={{ display: 'flex', minHeight: 200 }}>
      <div data-testid="start" style={{ width }}>{start}</div>
      <div
        role="separator"
        aria-orientation="vertical"
        aria-valuenow={width}
        tabIndex={0}
        style={{ width: 8 }}
        onKeyDown={(event) => setWidth(width + (event.key === 'ArrowRight' ? 10 : -10))}
      />
      <div data-testid="end">{end}</div>
    </div>
  );
}
