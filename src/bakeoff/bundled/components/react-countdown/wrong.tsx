import { useEffect, useState } from 'react';

export default function Countdown({ seconds, onDone }: any) {
  const [left, setLeft] = useState(seconds);
  const [running, setRunning] = useState(false);
  useEffect(() => {
    if (!running) return;
    setInterval(() => setLeft((now: number) => now - 1), 1000);
  }, [running]);
  useEffect(() => {
    if (left === 0) onDone?.();
  }, [left]);
  return (
    <div>
      <p role="timer">{Math.floor(left / 60)}:{left % 60}</p>
      <button onClick={() => setRunning(!running)}>{running ? 'Pause' : 'Start'}</button>
      {left <= 0 && <p role="alert">Time is up</p>}
      <button onClick={() => setLeft(seconds)}>Reset</button>
    </div>
  );
}
