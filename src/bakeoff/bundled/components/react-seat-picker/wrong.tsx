import { useState } from 'react';

export default function SeatPicker({ rows, perRow, taken = [], price, onConfirm }: any) {
  const [chosen, setChosen] = useState<string[]>([]);
  const letters = 'ABCDEFGHIJ'.slice(0, rows).split('');
  const numbers = Array.from({ length: perRow }, (_, place) => place + 1);
  return (
    <div>
      {letters.map((letter) =>
        numbers.map((number) => {
          const seat = letter + number;
          return (
            <button key={seat} aria-pressed={chosen.includes(seat)} disabled={taken.includes(seat)} onClick={() => setChosen([...chosen, seat])}>
              {seat}
            </button>
          );
        }),
      )}
      <p role="status">{chosen.length ? `${chosen.length} seats, ${chosen.length * price}` : 'No seats'}</p>
      <button onClick={() => onConfirm?.([...chosen].sort())}>Confirm</button>
    </div>
  );
}
