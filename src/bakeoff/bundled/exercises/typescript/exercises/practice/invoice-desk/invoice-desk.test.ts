import { describe, expect, it } from '@jest/globals'
import { dueDate, nextNumber, pages, totals } from './invoice.ts'
import type { Line } from './invoice.ts'
import { formatAmount, parseAmount, percentOf, share } from './money.ts'

const line = (quantity: number, unitPrice: number, taxRate: number): Line => ({ item: 'thing', quantity, unitPrice, taxRate })

describe('money', () => {
  it.each([
    ['12', 1200],
    ['12.5', 1250],
    ['12.05', 1205],
    ['-0.50', -50],
    ['-3.25', -325],
    ['1,234,567.05', 123456705],
    ['0.00', 0],
  ])('parses %p', (text, cents) => {
    expect(parseAmount(text)).toBe(cents)
  })

  it.each(['', '1,23', '12,3456', '1.234', '.5', '12.', '--1', '1 000'])('refuses to parse %p', (text) => {
    expect(() => parseAmount(text)).toThrow(new Error(`not an amount: ${text}`))
  })

  it.each([
    [0, '0.00'],
    [5, '0.05'],
    [-5, '-0.05'],
    [-50, '-0.50'],
    [1250, '12.50'],
    [-123405, '-1,234.05'],
    [123456789012, '1,234,567,890.12'],
  ])('formats %p', (cents, text) => {
    expect(formatAmount(cents)).toBe(text)
  })

  it.each([
    [1000, 7, 70],
    [50, 5, 3],
    [-50, 5, -3],
    [50, -5, -3],
    [49, 5, 2],
    [150, 0.35, 1],
    [5000, 0.57, 29],
    [50000, 1.15, 575],
    [9007199254740991, 50, 4503599627370496],
    [10, -1, 0],
  ])('of %p takes %p percent', (cents, rate, expected) => {
    expect(percentOf(cents, rate)).toBe(expected)
  })

  it.each([
    [100, [1, 1, 1], [34, 33, 33]],
    [101, [1, 1, 1], [34, 34, 33]],
    [100, [1, 2, 4], [14, 29, 57]],
    [5, [0, 1, 1, 0], [0, 3, 2, 0]],
    [10, [1, 5, 5, 5], [1, 3, 3, 3]],
    [1, [0, 3], [0, 1]],
    [-100, [1, 1, 1], [-34, -33, -33]],
  ])('shares %p by %p', (cents, weights, expected) => {
    expect(share(cents, weights)).toEqual(expected)
  })

  it('cannot be shared by weights that make no sense', () => {
    expect(() => share(100, [0, 0])).toThrow(RangeError)
    expect(() => share(100, [])).toThrow(RangeError)
    expect(() => share(100, [3, -1])).toThrow(RangeError)
  })
})

describe('invoice', () => {
  it('computes the tax of a rate once, in order of the rate', () => {
    expect(totals([line(1, 1010, 19), line(3, 333, 7), line(1, 50, 7), line(2, 100, 0), line(1, 1010, 19)])).toEqual({
      net: 3269,
      discount: 0,
      taxes: [
        { rate: 0, base: 200, tax: 0 },
        { rate: 7, base: 1049, tax: 73 },
        { rate: 19, base: 2020, tax: 384 },
      ],
      gross: 3726,
    })
  })

  it('takes the discount off before tax', () => {
    expect(totals([line(1, 5000, 20), line(1, 2500, 10), line(1, 2500, 5)], 3.33)).toEqual({
      net: 10000,
      discount: 333,
      taxes: [
        { rate: 5, base: 2417, tax: 121 },
        { rate: 10, base: 2417, tax: 242 },
        { rate: 20, base: 4833, tax: 967 },
      ],
      gross: 10997,
    })
  })

  it('can have a surcharge, or no lines', () => {
    expect(totals([line(1, 1000, 10)], -5)).toEqual({
      net: 1000,
      discount: -50,
      taxes: [{ rate: 10, base: 1050, tax: 105 }],
      gross: 1155,
    })
    expect(totals([], 10)).toEqual({ net: 0, discount: 0, taxes: [], gross: 0 })
  })

  it('gets the next number of its year', () => {
    expect(nextNumber(['2031-0007', '2031-0002', '2030-0044'], 2031)).toBe('2031-0008')
    expect(nextNumber(['2030-0044'], 2031)).toBe('2031-0001')
    expect(nextNumber(['2031-9999', '2031-10000', '2031-0500'], 2031)).toBe('2031-10001')
    expect(nextNumber(['20310-0004'], 2031)).toBe('2031-0001')
  })

  it.each([
    ['2031-01-01', 14, '2031-01-15'],
    ['2031-02-20', 11, '2031-03-03'],
    ['2031-01-10', 8, '2031-01-20'],
    ['2031-01-10', 9, '2031-01-20'],
    ['2031-12-20', 8, '2031-12-29'],
  ])('that is issued on %p is due %p days later', (issued, days, due) => {
    expect(dueDate(issued, days)).toBe(due)
  })

  it('is split into pages, and keeps its lines', () => {
    const lines = [line(1, 1, 1), line(2, 2, 2), line(3, 3, 3)]
    const copy = [...lines]
    expect(pages(lines, 2)).toEqual([[copy[0], copy[1]], [copy[2]]])
    expect(pages(copy.slice(0, 2), 2)).toEqual([[copy[0], copy[1]]])
    expect(lines).toEqual(copy)
    expect(pages([], 2)).toEqual([[]])
  })
})
