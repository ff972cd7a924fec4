import { describe, expect, it, xit } from '@jest/globals'
import { label, volumes } from './shelf-labels.ts'

describe('label', () => {
  it('names a single volume', () => {
    expect(label([7])).toBe('7')
  })

  xit('says when the shelf is empty', () => {
    expect(label([])).toBe('(empty)')
  })

  xit('writes three consecutive volumes as a range, two one by one', () => {
    expect(label([1, 2, 3, 5, 6, 8])).toBe('1-3, 5, 6, 8')
  })

  xit('sorts as numbers and names each volume once', () => {
    expect(label([10, 9, 2, 11, 9, 100])).toBe('2, 9-11, 100')
  })

  xit('leaves the given list as it was', () => {
    const given = [3, 1, 2, 2]
    label(given)
    expect(given).toEqual([3, 1, 2, 2])
  })

  xit('refuses what is no volume', () => {
    for (const volume of [0, -4, 2.5, Number.NaN]) {
      expect(() => label([1, volume])).toThrow(RangeError)
    }
  })
})

describe('volumes', () => {
  xit('reads what label writes', () => {
    const given = [1, 2, 3, 5, 6, 8, 20, 21, 22, 23]
    expect(volumes(label(given))).toEqual(given)
    expect(volumes(label([]))).toEqual([])
  })

  xit('does not care about spaces, order, overlaps and short ranges', () => {
    expect(volumes(' 8 - 9,5-5 ,1-3,  2-4')).toEqual([1, 2, 3, 4, 5, 8, 9])
  })

  xit('refuses what cannot be read', () => {
    for (const [text, part] of [
      ['1, two, 3', 'two'],
      ['1,, 3', ''],
      ['', ''],
      ['4, 9 - 7 ', '9 - 7'],
      ['0', '0'],
      ['1-2-3', '1-2-3'],
      ['-5', '-5'],
      ['1.5', '1.5'],
      ['x, y', 'x'],
    ] as const) {
      expect(() => volumes(text)).toThrow(new Error(`unreadable part: "${part}"`))
    }
  })
})
