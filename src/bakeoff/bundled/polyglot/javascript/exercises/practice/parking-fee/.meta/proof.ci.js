const DAY = 24 * 60;

export function fee(minutes) {
  if (minutes < 0) throw new RangeError('a stay cannot be negative');
  const rest = minutes % DAY;
  const cents = rest > 10 ? Math.ceil(rest / 30) * 120 : 0;
  return Math.floor(minutes / DAY) * 1500 + Math.min(cents, 1500);
}

export function receipt(minutes) {
  const rest = String(minutes % 60).padStart(2, '0');
  return `${Math.floor(minutes / 60)}h${rest}m: ${(fee(minutes) / 100).toFixed(2)}`;
}
