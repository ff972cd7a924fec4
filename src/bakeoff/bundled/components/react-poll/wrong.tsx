import { useState } from 'react';

export default function Poll({ question, options, onVote }: any) {
  const [chosen, setChosen] = useState(null);
  const [voted, setVoted] = useState(false);
  if (!voted) {
    return (
      <div role="radiogroup" aria-label={question}>
        {options.map((option: any) => (
          <label key={option.id}>
            <input type="radio" name="poll" onChange={() => setChosen(option.id)} />
            {option.label}
          </label>
        ))}
        <button onClick={() => { setVoted(true); onVote?.(chosen); }}>Vote</button>
      </div>
    );
  }
  const all = options.reduce((sum: number, option: any) => sum + option.votes, 0);
  return (
    <div>
      <ul>
        {options.map((option: any) => (
          <li key={option.id} aria-current={option.id === chosen}>
            {option.label}: {option.votes} votes ({Math.floor((100 * option.votes) / all)} %)
          </li>
        ))}
      </ul>
      <button onClick={() => setVoted(false)}>Change vote</button>
    </div>
  );
}
