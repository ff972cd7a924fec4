import { beforeEach, describe, expect, it, xit } from '@jest/globals'
import { FakeClock, settle } from './fake-clock.ts'
import { ClosedError, Pool, TimeoutError } from './polite-pool.ts'
import type { Task } from './polite-pool.ts'

let clock: FakeClock
let diary: string[]

beforeEach(() => {
  clock = new FakeClock()
  diary = []
})

/** A task that takes its time, and writes down when it starts; it fails as often as it is told to. */
function task(name: string, duration: number, failures = 0): Task<string> {
  return (attempt) => {
    diary.push(`${name}${attempt} at ${clock.now()}`)
    return new Promise((resolve, reject) => {
      clock.after(duration, () => (attempt > failures ? resolve(name) : reject(new Error(`${name} failed`))))
    })
  }
}

/** Writes down when and how a promise ends. */
function note(promise: Promise<unknown>): void {
  promise.then(
    (value) => diary.push(`${value} done at ${clock.now()}`),
    (error) => diary.push(`${error instanceof Error ? error.constructor.name : error} at ${clock.now()}`),
  )
}

describe('pool', () => {
  it('gives the results', async () => {
    const pool = new Pool(clock, { limit: 2 })
    const results = Promise.all([pool.run(task('a', 10)), pool.run(task('b', 5)), pool.run(async () => 7)])
    await clock.advance(20)
    expect(await results).toEqual(['a', 'b', 7])
  })

  xit('runs no more than the limit, in order, each as soon as there is room', async () => {
    const pool = new Pool(clock, { limit: 2 })
    for (const [name, duration] of [['a', 30], ['b', 10], ['c', 30], ['d', 1]] as const) note(pool.run(task(name, duration)))
    await clock.advance(100)
    expect(diary.sort(byTime)).toEqual(
      [
        'a1 at 0',
        'b1 at 0',
        'b done at 10',
        'c1 at 10',
        'a done at 30',
        'd1 at 30',
        'd done at 31',
        'c done at 40',
      ].sort(byTime),
    )
  })

  xit('keeps the gap between starts, and no longer than needed', async () => {
    const pool = new Pool(clock, { limit: 2, gap: 10 })
    for (const [name, duration] of [['a', 1], ['b', 25], ['c', 100], ['d', 1]] as const) pool.run(task(name, duration))
    await clock.advance(35)
    expect(diary).toEqual(['a1 at 0', 'b1 at 10', 'c1 at 20', 'd1 at 35'])
    await clock.advance(65)
    pool.run(task('e', 1))
    await settle()
    expect(diary.at(-1)).toBe('e1 at 100')
  })

  xit('tries again after a wait that doubles, and counts attempts', async () => {
    const pool = new Pool(clock, { limit: 1, retries: 3, backoff: 100 })
    note(pool.run(task('a', 5, 3)))
    await clock.advance(1000)
    expect(diary).toEqual(['a1 at 0', 'a2 at 105', 'a3 at 310', 'a4 at 715', 'a done at 720'])
  })

  xit('gives up with the last error', async () => {
    const pool = new Pool(clock, { limit: 1, retries: 1 })
    const outcome = expect(
      pool.run((attempt) => {
        throw new Error(`attempt ${attempt}`)
      }),
    ).rejects.toThrow('attempt 2')
    await clock.advance(1)
    await outcome
    expect(clock.pending).toBe(0)
  })

  xit('lets others pass a job that waits, which then queues at the end', async () => {
    const pool = new Pool(clock, { limit: 1, retries: 1, backoff: 10 })
    pool.run(task('a', 5, 1))
    pool.run(task('b', 20))
    pool.run(task('c', 20))
    await clock.advance(100)
    expect(diary).toEqual(['a1 at 0', 'b1 at 5', 'c1 at 25', 'a2 at 45'])
  })

  xit('keeps the gap before further attempts, too', async () => {
    const pool = new Pool(clock, { limit: 5, gap: 50, retries: 1, backoff: 10 })
    pool.run(task('a', 5, 1))
    pool.run(task('b', 5))
    await clock.advance(200)
    expect(diary).toEqual(['a1 at 0', 'b1 at 50', 'a2 at 100'])
  })

  xit('has no patience with what takes too long, and ignores what comes of it', async () => {
    const pool = new Pool(clock, { limit: 1, timeout: 10 })
    note(pool.run(task('slow', 15)))
    note(pool.run(task('late', 12, 1)))
    note(pool.run(task('quick', 9)))
    await clock.advance(100)
    expect(diary.sort(byTime)).toEqual(
      [
        'slow1 at 0',
        'TimeoutError at 10',
        'late1 at 10',
        'TimeoutError at 20',
        'quick1 at 20',
        'quick done at 29',
      ].sort(byTime),
    )
    expect(clock.pending).toBe(0)
  })

  xit('tries again after a timeout, and takes the result of the attempt that counts', async () => {
    const pool = new Pool(clock, { limit: 2, timeout: 10, retries: 2, backoff: 2 })
    const durations = [13, 50, 4]
    const result = pool.run(async (attempt) => {
      diary.push(`${attempt} at ${clock.now()}`)
      await new Promise<void>((resolve) => void clock.after(durations[attempt - 1], resolve))
      return attempt
    })
    await clock.advance(100)
    expect(await result).toBe(3)
    expect(diary).toEqual(['1 at 0', '2 at 12', '3 at 26'])
  })

  xit('says when it is idle, waiting jobs included', async () => {
    const pool = new Pool(clock, { limit: 1, gap: 7, timeout: 1000, retries: 1, backoff: 100 })
    note(pool.idle().then(() => 'first'))
    await settle()
    expect(diary).toEqual(['first done at 0'])
    pool.run(task('a', 5, 1))
    pool.run(task('b', 5))
    note(pool.idle().then(() => 'second'))
    await clock.advance(109)
    expect(diary.at(-1)).toBe('a2 at 105')
    await clock.advance(1)
    expect(diary.at(-1)).toBe('second done at 110')
    expect(clock.pending).toBe(0)
  })

  xit('turns away what has not begun when it is closed', async () => {
    const pool = new Pool(clock, { limit: 2, gap: 3, timeout: 50, retries: 1, backoff: 100 })
    note(pool.run(task('again', 1, 1)))
    note(pool.run(task('on', 20)))
    note(pool.run(task('bad', 10, 1)))
    note(pool.run(task('queued', 1)))
    await clock.advance(8)
    pool.close()
    note(pool.run(task('new', 1)))
    note(pool.idle().then(() => 'idle'))
    await settle()
    expect(diary.splice(0)).toEqual([
      'again1 at 0',
      'on1 at 3',
      'bad1 at 6',
      'ClosedError at 8',
      'ClosedError at 8',
      'ClosedError at 8',
    ])
    await clock.advance(300)
    expect(diary).toEqual(['Error at 16', 'on done at 23', 'idle done at 23'])
    expect(clock.pending).toBe(0)
  })

  xit('that waits for the gap when it is closed leaves nothing on the clock', async () => {
    const pool = new Pool(clock, { limit: 2, gap: 1000 })
    note(pool.run(async () => 'a'))
    note(pool.run(task('b', 1)))
    await settle()
    pool.close()
    await settle()
    expect(diary).toEqual(['a done at 0', 'ClosedError at 0'])
    expect(clock.pending).toBe(0)
  })

  xit('refuses limits that make no sense', () => {
    for (const limit of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => new Pool(clock, { limit })).toThrow(RangeError)
    }
  })

  xit('names its errors', async () => {
    const pool = new Pool(clock, { limit: 1, timeout: 5 })
    const late = expect(pool.run(() => new Promise(() => {}))).rejects.toBeInstanceOf(TimeoutError)
    await clock.advance(5)
    await late
    pool.close()
    await expect(pool.run(async () => 1)).rejects.toBeInstanceOf(ClosedError)
  })
})

/** What happens at the same moment may be written down in any order: compared by time, then by text. */
function byTime(one: string, other: string): number {
  const time = (entry: string): number => Number(entry.split(' at ')[1])
  return time(one) - time(other) || one.localeCompare(other)
}
