const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
  ['s', 1],
] as const;

const PARTS = /^(?:(\d+)\s*d)?\s*(?:(\d+)\s*h)?\s*(?:(\d+)\s*m)?\s*(?:(\d+)\s*s)?$/i;

export function parseDuration(text: string): number {
  const trimmed = text.trim();
  if (/^\d+$/.test(trimmed)) return Number(trimmed);
  const found = PARTS.exec(trimmed);
  if (trimmed === '' || found === null) throw new SyntaxError(`not a duration: "${text}"`);
  return UNITS.reduce((sum, [, seconds], place) => sum + seconds * Number(found[place + 1] ?? 0), 0);
}

export function formatDuration(seconds: number, parts = 2): string {
  if (!Number.isFinite(seconds)) throw new RangeError(`not a number of seconds: ${seconds}`);
  let left = Math.floor(Math.abs(seconds));
  const found: string[] = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) found.push(`${count}${unit}`);
  }
  if (found.length === 0) return '0s';
  return (seconds < 0 ? '-' : '') + found.slice(0, parts).join(' ');
}
