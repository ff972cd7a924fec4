export type Reading = { minute: number; level: number }

export type Kind = 'high' | 'low'

export type Tide = { kind: Kind; minute: number; level: number }

type Plateau = { first: number; last: number; level: number }

export function tides(readings: readonly Reading[]): Tide[] {
  const steps = plateaus(readings)
  const found: Tide[] = []
  for (let index = 1; index < steps.length - 1; index++) {
    const { first, last, level } = steps[index]
    const rises = steps[index - 1].level < level
    const falls = steps[index + 1].level < level
    if (rises === falls) found.push({ kind: rises ? 'high' : 'low', minute: Math.floor((first + last) / 2), level })
  }
  return found
}

export function greatestRange(tides: readonly Tide[]): number | undefined {
  if (tides.length < 2) return undefined
  return Math.max(...tides.slice(1).map((tide, index) => Math.abs(tide.level - tides[index].level)))
}

export function nextTide(tides: readonly Tide[], minute: number, kind?: Kind): Tide | undefined {
  return tides.find((tide) => tide.minute >= minute && (kind === undefined || tide.kind === kind))
}

function plateaus(readings: readonly Reading[]): Plateau[] {
  const levels = new Map(readings.map(({ minute, level }) => [minute, level]))
  const found: Plateau[] = []
  for (const [minute, level] of [...levels].sort(([a], [b]) => a - b)) {
    const last = found.at(-1)
    if (last && last.level === level) last.last = minute
    else found.push({ first: minute, last: minute, level })
  }
  return found
}
