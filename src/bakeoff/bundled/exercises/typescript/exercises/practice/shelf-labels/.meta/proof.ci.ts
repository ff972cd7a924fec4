export function label(volumes: readonly number[]): string {
  if (volumes.length === 0) return '(empty)'
  return runs(sorted(volumes.map(checked)))
    .map(([first, last]) => {
      if (first === last) return `${first}`
      return last === first + 1 ? `${first}, ${last}` : `${first}-${last}`
    })
    .join(', ')
}

export function volumes(label: string): number[] {
  if (label.trim() === '(empty)') return []
  return sorted(label.split(',').flatMap((part) => numbersIn(part.trim())))
}

function checked(volume: number): number {
  if (!Number.isInteger(volume) || volume < 1) throw new RangeError(`not a volume: ${volume}`)
  return volume
}

function sorted(numbers: number[]): number[] {
  return [...new Set(numbers)].sort((a, b) => a - b)
}

function runs(numbers: number[]): [number, number][] {
  const found: [number, number][] = []
  for (const number of numbers) {
    const last = found.at(-1)
    if (last && last[1] === number - 1) last[1] = number
    else found.push([number, number])
  }
  return found
}

function numbersIn(part: string): number[] {
  const match = /^(\d+)(?:\s*-\s*(\d+))?$/.exec(part)
  const first = Number(match?.[1] ?? 0)
  const last = Number(match?.[2] ?? first)
  if (first < 1 || last < first) throw new Error(`unreadable part: "${part}"`)
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}
