import { useEffect, useState } from 'react';

interface Props {
  seconds: number;
  onDone?: () => void;
}

export default function Countdown({ seconds, onDone }: Props) {
  const [left, setLeft] = useState(seconds);
  const [running, setRunning] = useState(false);
  const [started, setStarted] = useState(false);

  useEffect(() => {
    if (!running) return;
    const timer = setTimeout(() => {
      setLeft(left - 1);
      if (left === 1) {
        setRunning(false);
        onDone?.();
      }
    }, 1000);
    return () => clearTimeout(timer);
  }, [running, left, onDone]);

  function toggle() {
    setStarted(true);
    setRunning(!running);
  }

  function reset() {
    setLeft(seconds);
    setRunning(false);
    setStarted(false);
  }

  return (
    <div>
      <p role="timer">
        {Math.floor(left / 60)}:{String(left % 60).padStart(2, '0')}
      </p>
      {left > 0 ? (
        <button type="button" onClick={toggle}>
          {running ? 'Pause' : started ? 'Resume' : 'Start'}
        </button>
      ) : (
        <p role="alert">Time is up</p>
      )}
      <button type="button" disabled={!started} onClick={reset}>
        Reset
      </button>
    </div>
  );
}
