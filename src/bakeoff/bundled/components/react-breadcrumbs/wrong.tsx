import { useState } from 'react';

export default function Breadcrumbs({ path, max = 4, onOpen }: any) {
  const [open, setOpen] = useState(false);
  const crumbs = ['Home', ...path.slice(1).split('/')];
  const hidden = open ? 0 : crumbs.length - max;
  return (
    <nav aria-label="Path">
      <ol>
        {crumbs.map((label, place) =>
          place > 0 && place <= hidden ? null : (
            <li key={place}>
              {place === crumbs.length - 1 ? <b aria-current="page">{label}</b> : <button onClick={() => onOpen?.(label)}>{label}</button>}
            </li>
          ),
        )}
        {hidden > 0 && <li><button onClick={() => setOpen(true)}>Show {hidden} more</button></li>}
      </ol>
    </nav>
  );
}
