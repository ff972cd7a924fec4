import { useState } from 'react';

interface Props {
  path: string;
  max?: number;
  onOpen?: (path: string) => void;
}

function decoded(part: string) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export default function Breadcrumbs({ path, max = 4, onOpen }: Props) {
  const [expanded, setExpanded] = useState<string | null>(null);
  const parts = path.split('/').filter((part) => part !== '');
  const crumbs = [
    { label: 'Home', target: '/' },
    ...parts.map((part, place) => ({ label: decoded(part), target: `/${parts.slice(0, place + 1).join('/')}` })),
  ];
  const hidden = expanded === path ? 0 : Math.max(0, crumbs.length - max);
  const rest = crumbs.slice(hidden + 1);

  function crumb({ label, target }: { label: string; target: string }) {
    const last = target === crumbs[crumbs.length - 1].target;
    return (
      <li key={target}>
        {last ? (
          <span aria-current="page">{label}</span>
        ) : (
          <button type="button" onClick={() => onOpen?.(target)}>
            {label}
          </button>
        )}
      </li>
    );
  }

  return (
    <nav aria-label="Path">
      <ol>
        {crumb(crumbs[0])}
        {hidden > 0 && (
          <li>
            <button type="button" onClick={() => setExpanded(path)}>
              Show {hidden} more
            </button>
          </li>
        )}
        {rest.map(crumb)}
      </ol>
    </nav>
  );
}
