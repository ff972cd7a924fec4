export type Booking = { from: string; to: string; by: string[] }

type Span = { start: number; end: number; people: Map<string, string> }

export function tidy(bookings: readonly Booking[]): Booking[] {
  const spans = bookings.map(read).filter(({ start, end }) => start !== end)
  spans.sort((a, b) => a.start - b.start)
  const merged: Span[] = []
  for (const span of spans) {
    const last = merged.at(-1)
    if (last && belongTogether(last, span)) absorb(last, span)
    else merged.push(span)
  }
  return merged.map(({ start, end, people }) => ({ from: clock(start), to: clock(end), by: [...people.values()] }))
}

function read({ from, to, by }: Booking): Span {
  const [one, other] = [minutes(from), minutes(to)]
  const people = new Map<string, string>()
  by.forEach((name) => remember(people, name))
  return { start: Math.min(one, other), end: Math.max(one, other), people }
}

function belongTogether(earlier: Span, later: Span): boolean {
  if (later.start < earlier.end) return true
  return later.start === earlier.end && [...later.people.keys()].some((key) => earlier.people.has(key))
}

function absorb(into: Span, other: Span): void {
  into.end = Math.max(into.end, other.end)
  other.people.forEach((name) => remember(into.people, name))
}

function remember(people: Map<string, string>, name: string): void {
  const spelling = name.trim().replace(/\s+/g, ' ')
  const key = spelling.toLowerCase()
  if (key !== '' && !people.has(key)) people.set(key, spelling)
}

function minutes(time: string): number {
  const match = /^(\d{1,2})[:.h](\d{2})$/.exec(time.trim())
  const total = match ? Number(match[1]) * 60 + Number(match[2]) : Number.NaN
  if (!match || Number(match[2]) > 59 || total > 24 * 60) throw new Error(`not a time of day: ${time}`)
  return total
}

function clock(total: number): string {
  return `${String(Math.floor(total / 60)).padStart(2, '0')}:${String(total % 60).padStart(2, '0')}`
}
