import type { Clock } from './polite-pool.ts'

type Timer = { due: number; action: () => void }

/** A clock that stands still until it is told to go on. */
export class FakeClock implements Clock {
  private time = 0
  private timers: Timer[] = []

  now(): number {
    return this.time
  }

  after(delay: number, action: () => void): () => void {
    const timer = { due: this.time + delay, action }
    this.timers.push(timer)
    return () => {
      this.timers = this.timers.filter((other) => other !== timer)
    }
  }

  get pending(): number {
    return this.timers.length
  }

  async advance(duration: number): Promise<void> {
    const end = this.time + duration
    await settle()
    for (let timer = this.nextUntil(end); timer; timer = this.nextUntil(end)) {
      this.timers.splice(this.timers.indexOf(timer), 1)
      this.time = Math.max(this.time, timer.due)
      timer.action()
      await settle()
    }
    this.time = end
    await settle()
  }

  private nextUntil(end: number): Timer | undefined {
    const due = this.timers.filter((timer) => timer.due <= end)
    return due.sort((a, b) => a.due - b.due)[0]
  }
}

/** Lets everything happen that does not need the clock. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve()
}
