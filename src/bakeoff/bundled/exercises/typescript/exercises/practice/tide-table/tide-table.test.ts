import { describe, expect, it, xit } from '@jest/globals'
import { greatestRange, nextTide, tides } from './tide-table.ts'
import type { Reading } from './tide-table.ts'

const every10 = (...levels: number[]): Reading[] => levels.map((level, index) => ({ minute: index * 10, level }))

describe('tides', () => {
  it('finds a high and a low water', () => {
    expect(tides(every10(3, 5, 2, 1, 4))).toEqual([
      { kind: 'high', minute: 10, level: 5 },
      { kind: 'low', minute: 30, level: 1 },
    ])
  })

  xit('finds nothing in water that only rises, stands still, or was not read', () => {
    expect(tides(every10(1, 2, 2, 3))).toEqual([])
    expect(tides(every10(4, 4, 4))).toEqual([])
    expect(tides([])).toEqual([])
  })

  xit('puts the tide in the middle of a plateau, rounded down', () => {
    const readings = [
      { minute: 0, level: 1 },
      { minute: 7, level: 6 },
      { minute: 9, level: 6 },
      { minute: 20, level: 6 },
      { minute: 33, level: 2 },
    ]
    expect(tides(readings)).toEqual([{ kind: 'high', minute: 13, level: 6 }])
  })

  xit('rounds down before minute zero, too', () => {
    const readings = [
      { minute: -9, level: 4 },
      { minute: -6, level: 1 },
      { minute: -3, level: 1 },
      { minute: 0, level: 4 },
    ]
    expect(tides(readings)).toEqual([{ kind: 'low', minute: -5, level: 1 }])
  })

  xit('knows nothing of plateaus at the ends', () => {
    expect(tides(every10(5, 5, 2, 4, 4))).toEqual([{ kind: 'low', minute: 20, level: 2 }])
  })

  xit('sorts readings, and believes the last of a minute', () => {
    const readings = [
      { minute: 100, level: 1 },
      { minute: 20, level: 9 },
      { minute: 3, level: 2 },
      { minute: 20, level: 4 },
      { minute: 9, level: 3 },
    ]
    expect(tides(readings)).toEqual([{ kind: 'high', minute: 20, level: 4 }])
    expect(readings[0].minute).toBe(100)
  })

  xit('sees a plateau that only a corrected reading makes', () => {
    const readings = [...every10(0, 5, 1, 5, 0), { minute: 20, level: 5 }]
    expect(tides(readings)).toEqual([{ kind: 'high', minute: 20, level: 5 }])
  })
})

describe('greatestRange', () => {
  xit('compares neighbours only', () => {
    expect(greatestRange(tides(every10(0, 6, 4, 9, 3, 5, 1, 2)))).toBe(6)
  })

  xit('is unknown with fewer than two tides', () => {
    expect(greatestRange([])).toBeUndefined()
    expect(greatestRange(tides(every10(0, 6, 4)))).toBeUndefined()
  })
})

describe('nextTide', () => {
  const table = [
    { kind: 'high', minute: 10, level: 5 },
    { kind: 'low', minute: 30, level: 1 },
    { kind: 'high', minute: 50, level: 7 },
  ] as const

  xit('includes a tide of that very minute', () => {
    expect(nextTide(table, 10)).toEqual({ kind: 'high', minute: 10, level: 5 })
    expect(nextTide(table, 11)).toEqual({ kind: 'low', minute: 30, level: 1 })
  })

  xit('can look for one kind', () => {
    expect(nextTide(table, 11, 'high')).toEqual({ kind: 'high', minute: 50, level: 7 })
    expect(nextTide(table, 31, 'low')).toBeUndefined()
  })
})
