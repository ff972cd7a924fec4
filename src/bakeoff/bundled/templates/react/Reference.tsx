import { useState } from 'react';

interface Props {
  start?: number;
  step?: number;
}

export default function Counter({ start = 0, step = 1 }: Props) {
  const [count, setCount] = useState(start);
  return (
    <>
      <button type="button" onClick={() => setCount(count + step)}>
        Count: {count}
      </button>
      <button type="button" disabled={count === start} onClick={() => setCount(start)}>
        Reset
      </button>
    </>
  );
}
