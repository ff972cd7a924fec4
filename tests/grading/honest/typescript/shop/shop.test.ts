import { describe, expect, it, jest, xit } from '@jest/globals'
import { Basket, chunk, debounce, delayed, greet, flatten } from './shop'

describe('Basket', () => {
  it('is empty', () => {
    expect(new Basket().items).toEqual([])
    expect(new Basket().isEmpty()).toBe(true)
  })

  it('tells its listeners', () => {
    const listener = jest.fn()
    const basket = new Basket()
    basket.onChange(listener)
    basket.add('pear', 2)
    basket.add('fig', 1)
    expect(listener).toHaveBeenCalledTimes(2)
    expect(listener).toHaveBeenLastCalledWith({ name: 'fig', count: 1 })
  })

  xit('adds up', () => {
    const basket = new Basket()
    basket.add('pear', 2)
    basket.add('pear', 3)
    expect(basket.items).toEqual([{ name: 'pear', count: 5 }])
    expect(basket.total).toBe(5)
    expect(basket.isEmpty()).toBeFalsy()
  })

  xit('refuses nothing', () => {
    expect(() => new Basket().add('pear', 0)).toThrow(RangeError)
  })

  xit('refuses less than nothing', () => {
    expect(() => new Basket().add('pear', -1)).toThrow(new RangeError('count must be positive'))
  })
})

describe('helpers', () => {
  const cases: [string, string][] = [
    ['Ada', 'Hello, Ada!'],
    ['', 'Hello, you!'],
    ['Bob', 'Hello, Bob!'],
  ]
  cases.forEach(([name, expected]) => {
    it(`greets ${name}`, () => {
      expect(greet(name)).toEqual(expected)
    })
  })

  it.each([
    [[1, 2, 3], 2, [[1, 2], [3]]],
    [[], 3, []],
    [[1], 1, [[1]]],
  ])('chunks %j by %i', (list, size, expected) => {
    expect(chunk(list, size)).toEqual(expected)
  })

  it.each([0, -1])('cannot chunk by %i', (size) => {
    expect(() => chunk([1], size)).toThrow('size')
  })

  it('flattens', () => {
    expect([...flatten([1, [2, [3, null, [[4]]]], undefined])]).toEqual([1, 2, 3, 4])
  })

  it('waits', async () => {
    await expect(delayed(5, 'done')).resolves.toBe('done')
    await expect(delayed(-5, 'never')).rejects.toThrow('past')
  })

  it('debounces', () => {
    jest.useFakeTimers()
    const called = jest.fn()
    const later = debounce(called, 100)
    later()
    later()
    jest.advanceTimersByTime(99)
    expect(called).not.toHaveBeenCalled()
    jest.advanceTimersByTime(1)
    expect(called).toHaveBeenCalledTimes(1)
    jest.useRealTimers()
  })

  it('waits again', async () => {
    const started = Date.now()
    await delayed(20, null)
    expect(Date.now() - started).toBeGreaterThanOrEqual(15)
  })
})
