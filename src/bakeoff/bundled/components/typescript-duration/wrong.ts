const SIZES: Record<string, number> = { d: 86400, h: 3600, m: 60, s: 1 };

export function parseDuration(text: string): number {
  let sum = 0;
  for (const [, count, unit] of text.matchAll(/(\d+)([dhms])/g)) sum += Number(count) * SIZES[unit];
  return sum;
}

export function formatDuration(seconds: number): string {
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.round((seconds % 3600) / 60);
  return `${hours}h ${minutes}m`;
}
