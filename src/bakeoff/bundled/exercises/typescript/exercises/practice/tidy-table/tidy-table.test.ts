import { describe, expect, it } from '@jest/globals'
import { fit, table, width } from './tidy-table.ts'
import type { Align } from './tidy-table.ts'

const ZOE = 'Zoe\u0308'
const FAMILY = '\u{1F469}\u200D\u{1F469}\u200D\u{1F466}'
const THUMB = '\u{1F44D}\u{1F3FD}'
const FLAGS = '\u{1F1EF}\u{1F1F5}\u{1F1E7}\u{1F1F7}'
const HEART = '\u2764\uFE0F'

describe('width', () => {
  it.each([
    ['', 0],
    ['plain', 5],
    [ZOE, 3],
    ['林檎', 4],
    ['ｶﾅ', 2],
    ['Ｆ', 2],
    ['한글', 4],
    ['각', 2],
    [FAMILY, 2],
    [THUMB, 2],
    [FLAGS, 4],
    ['\u{1F1EF}', 1],
    [HEART, 2],
    ['\u2764', 1],
    ['1\uFE0F\u20E3', 2],
    ['नि', 1],
    ['a\u200Bb', 2],
    ['\u0301', 0],
    ['\u0007', 0],
    ['שלום', 4],
    ['\u{20BB7}野家', 6],
  ])('of %p is %p', (text, columns) => {
    expect(width(text)).toBe(columns)
  })
})

describe('fit', () => {
  it.each([
    ['ab', 5, 'left', 'ab   '],
    ['ab', 5, 'right', '   ab'],
    ['ab', 5, 'center', ' ab  '],
    ['林', 5, 'center', ' 林  '],
    [ZOE, 4, 'right', ` ${ZOE}`],
    ['', 2, 'center', '  '],
    ['ab', 0, 'left', ''],
  ] as [string, number, Align, string][])('puts %p into %p columns, %p', (text, columns, align, expected) => {
    expect(fit(text, columns, align)).toBe(expected)
  })

  it.each([
    ['abcdef', 4, 'abc…'],
    ['abcd', 4, 'abcd'],
    ['ab cdef', 4, 'ab… '],
    ['林檎林檎', 5, '林檎…'],
    ['林檎林檎', 4, '林… '],
    ['林檎', 2, '… '],
    ['林檎', 1, '…'],
    [`${FAMILY}${FAMILY}${FAMILY}`, 5, `${FAMILY}${FAMILY}…`],
    [`${FLAGS}x`, 4, '\u{1F1EF}\u{1F1F5}… '],
    [`${ZOE}${ZOE}`, 4, `${ZOE}…`],
    ['ae\u0301e\u0301e\u0301', 3, 'ae\u0301…'],
  ])('cuts %p to %p columns', (text, columns, expected) => {
    expect(fit(text, columns)).toBe(expected)
    expect(width(fit(text, columns, 'right'))).toBe(columns)
  })

  it('aligns what was cut', () => {
    expect(fit('林檎林檎', 4, 'right')).toBe(' 林…')
    expect(fit('林檎林檎', 4, 'center')).toBe('林… ')
  })

  it('makes one space of all white space within, and drops it at the ends', () => {
    expect(fit('\t a\n\u00a0 b \u3000', 5)).toBe('a b  ')
    expect(fit(' \n ', 1)).toBe(' ')
  })
})

describe('table', () => {
  it('lines columns up', () => {
    expect(
      table(
        [
          ['name', 'fruit', 'n'],
          [ZOE, '林檎', '7'],
          ['Bo', FLAGS, '1234'],
        ],
        { align: ['left', 'center', 'right'] },
      ),
    ).toBe(
      ['name │ fruit │    n', '─────┼───────┼─────', `${ZOE}  │ 林檎  │    7`, `Bo   │ ${FLAGS}  │ 1234`].join('\n'),
    )
  })

  it('never makes a column wider than the maximum, nor wider than needed', () => {
    expect(table([['a', 'long title'], ['  b  ', '林檎林檎']], { max: 6 })).toBe(
      ['a │ long…', '──┼───────', 'b │ 林檎…'].join('\n'),
    )
  })

  it('fills short rows up, and ends no line in a space', () => {
    expect(table([['a'], ['bb', 'c', ''], [], ['', '', 'd']])).toBe(
      ['a  │   │', '───┼───┼──', 'bb │ c │', '   │   │', '   │   │ d'].join('\n'),
    )
  })

  it('may have a single row, or none', () => {
    expect(table([['x', 'y']])).toBe('x │ y\n──┼──')
    expect(table([])).toBe('')
  })

  it('leaves the rows as they are', () => {
    const rows = Object.freeze([Object.freeze([' a ']), Object.freeze(['b', 'c'])])
    expect(table(rows)).toBe('a │\n──┼──\nb │ c')
  })
})
