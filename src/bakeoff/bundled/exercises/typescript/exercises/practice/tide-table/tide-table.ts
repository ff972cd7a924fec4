export type Reading = { minute: number; level: number }

export type Kind = 'high' | 'low'

export type Tide = { kind: Kind; minute: number; level: number }

export function tides(readings: readonly Reading[]): Tide[] {
  throw new Error('tides is not written yet')
}

export function greatestRange(tides: readonly Tide[]): number | undefined {
  throw new Error('greatestRange is not written yet')
}

export function nextTide(tides: readonly Tide[], minute: number, kind?: Kind): Tide | undefined {
  throw new Error('nextTide is not written yet')
}
