export interface Clock {
  now(): number
  after(delay: number, action: () => void): () => void
}

export type Options = { limit: number; gap?: number; timeout?: number; retries?: number; backoff?: number }

export type Task<T> = (attempt: number) => Promise<T>

export class TimeoutError extends Error {}

export class ClosedError extends Error {}

type Job = { attempt: number; start: () => Promise<unknown>; succeed: (value: unknown) => void; fail: (error: unknown) => void }

export class Pool {
  private readonly options: Required<Omit<Options, 'timeout'>> & Pick<Options, 'timeout'>
  private readonly queue: Job[] = []
  private readonly waiting = new Map<Job, () => void>()
  private idlers: (() => void)[] = []
  private running = 0
  private closed = false
  private lastStart = Number.NEGATIVE_INFINITY
  private callOffGap: (() => void) | undefined

  constructor(
    private readonly clock: Clock,
    options: Options,
  ) {
    if (!Number.isInteger(options.limit) || options.limit < 1) throw new RangeError(`not a limit: ${options.limit}`)
    this.options = { gap: 0, retries: 0, backoff: 0, ...options }
  }

  run<T>(task: Task<T>): Promise<T> {
    if (this.closed) return Promise.reject(new ClosedError('the pool is closed'))
    return new Promise<T>((resolve, reject) => {
      const job: Job = {
        attempt: 1,
        start: async () => task(job.attempt),
        succeed: (value) => resolve(value as T),
        fail: reject,
      }
      this.queue.push(job)
      this.proceed()
    })
  }

  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.idlers.push(resolve)
      this.tellIfIdle()
    })
  }

  close(): void {
    this.closed = true
    this.callOffGap?.()
    this.callOffGap = undefined
    for (const callOff of this.waiting.values()) callOff()
    const left = [...this.queue.splice(0), ...this.waiting.keys()]
    this.waiting.clear()
    for (const job of left) job.fail(new ClosedError('the pool was closed'))
    this.tellIfIdle()
  }

  private proceed(): void {
    while (this.queue.length > 0 && this.running < this.options.limit && !this.callOffGap) {
      const pause = this.lastStart + this.options.gap - this.clock.now()
      if (pause > 0) this.pauseFor(pause)
      else this.start(this.queue.shift() as Job)
    }
    this.tellIfIdle()
  }

  private pauseFor(delay: number): void {
    this.callOffGap = this.clock.after(delay, () => {
      this.callOffGap = undefined
      this.proceed()
    })
  }

  private start(job: Job): void {
    this.running++
    this.lastStart = this.clock.now()
    let over = false
    let callOffTimeout: (() => void) | undefined
    const finish = (then: () => void): void => {
      if (over) return
      over = true
      callOffTimeout?.()
      this.running--
      then()
      this.proceed()
    }
    if (this.options.timeout !== undefined) {
      const late = new TimeoutError(`no result after ${this.options.timeout} ms`)
      callOffTimeout = this.clock.after(this.options.timeout, () => finish(() => this.failed(job, late)))
    }
    job.start().then(
      (value) => finish(() => job.succeed(value)),
      (error) => finish(() => this.failed(job, error)),
    )
  }

  private failed(job: Job, error: unknown): void {
    if (this.closed || job.attempt > this.options.retries) {
      job.fail(error)
      return
    }
    const delay = this.options.backoff * 2 ** (job.attempt - 1)
    job.attempt++
    this.waiting.set(
      job,
      this.clock.after(delay, () => {
        this.waiting.delete(job)
        this.queue.push(job)
        this.proceed()
      }),
    )
  }

  private tellIfIdle(): void {
    if (this.queue.length + this.running + this.waiting.size > 0) return
    for (const tell of this.idlers.splice(0)) tell()
  }
}
