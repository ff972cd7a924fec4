import { useState } from 'react';

export default function Counter({ start = 0 }) {
  const [count, setCount] = useState(0);
  return (
    <>
      <button onClick={() => setCount(count + 1)}>Count: {count}</button>
      <button onClick={() => setCount(start)}>Reset</button>
    </>
  );
}
