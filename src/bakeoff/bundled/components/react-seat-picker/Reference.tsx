import { useState } from 'react';

interface Props {
  rows: number;
  perRow: number;
  taken?: string[];
  limit?: number;
  price: number;
  onConfirm?: (seats: string[]) => void;
}

export default function SeatPicker({ rows, perRow, taken = [], limit = 4, price, onConfirm }: Props) {
  const [chosen, setChosen] = useState<string[]>([]);
  const seats = Array.from({ length: rows * perRow }, (_, place) => {
    const row = String.fromCharCode(65 + Math.floor(place / perRow));
    return `${row}${(place % perRow) + 1}`;
  });

  function toggle(seat: string) {
    setChosen(chosen.includes(seat) ? chosen.filter((other) => other !== seat) : [...chosen, seat]);
  }

  function confirm() {
    onConfirm?.(seats.filter((seat) => chosen.includes(seat)));
    setChosen([]);
  }

  const many = chosen.length;
  return (
    <div>
      {seats.map((seat) => {
        const pressed = chosen.includes(seat);
        return (
          <button
            key={seat}
            type="button"
            aria-pressed={pressed}
            disabled={taken.includes(seat) || (many >= limit && !pressed)}
            onClick={() => toggle(seat)}
          >
            {seat}
          </button>
        );
      })}
      <p role="status">{many === 0 ? 'No seats' : `${many} ${many === 1 ? 'seat' : 'seats'}, ${(many * price).toFixed(2)}`}</p>
      <button type="button" disabled={many === 0} onClick={confirm}>
        Confirm
      </button>
    </div>
  );
}
