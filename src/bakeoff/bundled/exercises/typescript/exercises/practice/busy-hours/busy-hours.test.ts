import { describe, expect, it } from '@jest/globals'
import { nextBusier, overtakes, peaks } from './busy-hours.ts'

type Sealed = { readonly seal: symbol }

/** Readings that tell nothing unless they are compared here, where it is counted. */
class Sensor {
  comparisons = 0
  private readonly levels = new Map<symbol, number>()

  read(levels: number[]): readonly Sealed[] {
    const sealed = levels.map((level) => {
      const seal = Symbol('reading')
      this.levels.set(seal, level)
      return Object.freeze({ seal })
    })
    return Object.freeze(sealed)
  }

  compare = (a: Sealed, b: Sealed): number => {
    this.comparisons++
    return (this.levels.get(a.seal) as number) - (this.levels.get(b.seal) as number)
  }
}

function scattered(length: number, different = 1_000_003): number[] {
  let state = 12_345
  return Array.from({ length }, () => {
    state = (state * 48_271) % 2_147_483_647
    return state % different
  })
}

const byNumber = (a: number, b: number): number => a - b
const rising = Array.from({ length: 3000 }, (_, index) => index)
const falling = [...rising].reverse()
const level = rising.map(() => 7)

describe('peaks', () => {
  it('names the first greatest reading of each window', () => {
    expect(peaks([3, 1, 4, 1, 5, 5, 2, 1], 3, byNumber)).toEqual([2, 2, 4, 4, 4, 5])
    expect(peaks([2, 2, 2, 1], 2, byNumber)).toEqual([0, 1, 2])
  })

  it('has no window wider than the readings, and refuses odd widths', () => {
    expect(peaks([1, 2], 3, byNumber)).toEqual([])
    expect(peaks([1, 3, 2], 3, byNumber)).toEqual([1])
    expect(peaks([4, 2], 1, byNumber)).toEqual([0, 1])
    for (const width of [0, -1, 1.5, Number.NaN]) expect(() => peaks([1], width, byNumber)).toThrow(RangeError)
  })

  it.each([2, 50, 1500, 2999])('stays within the bound for windows of %p', (width) => {
    for (const levels of [rising, falling, level, scattered(3000), scattered(3000, 5)]) {
      const sensor = new Sensor()
      const found = peaks(sensor.read(levels), width, sensor.compare)
      expect(found).toHaveLength(3001 - width)
      expect(sensor.comparisons).toBeLessThanOrEqual(9000)
    }
  })

  it('is right on many readings', () => {
    const levels = scattered(400, 9)
    const expected = levels.slice(0, 381).map((_, start) => {
      const window = levels.slice(start, start + 20)
      return start + window.indexOf(Math.max(...window))
    })
    expect(peaks(levels, 20, byNumber)).toEqual(expected)
  })
})

describe('nextBusier', () => {
  it('counts the steps to a greater reading', () => {
    expect(nextBusier([3, 1, 1, 2, 5, 5, 4], byNumber)).toEqual([4, 2, 1, 1, 0, 0, 0])
    expect(nextBusier([], byNumber)).toEqual([])
  })

  it('stays within the bound', () => {
    for (const levels of [rising, falling, level, scattered(3000), scattered(3000, 5)]) {
      const sensor = new Sensor()
      expect(nextBusier(sensor.read(levels), sensor.compare)).toHaveLength(3000)
      expect(sensor.comparisons).toBeLessThanOrEqual(6000)
    }
  })

  it('is right on many readings', () => {
    const levels = scattered(400, 50)
    const expected = levels.map((one, index) => levels.slice(index).findIndex((other) => other > one)).map((at) => Math.max(at, 0))
    expect(nextBusier(levels, byNumber)).toEqual(expected)
  })
})

describe('overtakes', () => {
  it('counts pairs in the wrong order, and not those that are equal', () => {
    expect(overtakes([2, 1, 2, 1], byNumber)).toBe(3)
    expect(overtakes([1, 2, 2, 3], byNumber)).toBe(0)
    expect(overtakes([], byNumber)).toBe(0)
    expect(overtakes([1], byNumber)).toBe(0)
  })

  it.each([
    ['rising', rising, 0],
    ['falling', falling, (3000 * 2999) / 2],
    ['level', level, 0],
  ])('stays within the bound for %s readings', (_, levels, expected) => {
    const sensor = new Sensor()
    expect(overtakes(sensor.read(levels), sensor.compare)).toBe(expected)
    expect(sensor.comparisons).toBeLessThanOrEqual(3000 * 12)
  })

  it('stays within the bound for scattered readings, and is right', () => {
    const levels = scattered(3000, 700)
    let expected = 0
    levels.forEach((one, index) => {
      for (let later = index + 1; later < levels.length; later++) if (one > levels[later]) expected++
    })
    const sensor = new Sensor()
    expect(overtakes(sensor.read(levels), sensor.compare)).toBe(expected)
    expect(sensor.comparisons).toBeLessThanOrEqual(3000 * 12)
  })
})
