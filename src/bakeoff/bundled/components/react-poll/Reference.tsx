import { useState } from 'react';

interface Option {
  id: string;
  label: string;
  votes: number;
}

interface Props {
  question: string;
  options: Option[];
  onVote?: (id: string) => void;
}

export default function Poll({ question, options, onVote }: Props) {
  const [chosen, setChosen] = useState<string | null>(null);
  const [voted, setVoted] = useState(false);

  if (!voted) {
    return (
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setVoted(true);
          if (chosen !== null) onVote?.(chosen);
        }}
      >
        <div role="radiogroup" aria-label={question}>
          {options.map(({ id, label }) => (
            <label key={id}>
              <input type="radio" name="option" checked={chosen === id} onChange={() => setChosen(id)} />
              {label}
            </label>
          ))}
        </div>
        <button disabled={chosen === null}>Vote</button>
      </form>
    );
  }

  const counted = options.map((option) => ({ ...option, votes: option.votes + (option.id === chosen ? 1 : 0) }));
  const all = counted.reduce((sum, option) => sum + option.votes, 0);
  return (
    <div>
      <ul>
        {counted
          .sort((one, other) => other.votes - one.votes)
          .map(({ id, label, votes }) => (
            <li key={id} aria-current={id === chosen ? 'true' : undefined}>
              {`${label}: ${votes} ${votes === 1 ? 'vote' : 'votes'} (${Math.round((100 * votes) / all)} %)`}
            </li>
          ))}
      </ul>
      <button
        type="button"
        onClick={() => {
          setVoted(false);
          setChosen(null);
        }}
      >
        Change vote
      </button>
    </div>
  );
}
