export interface Clock {
  now(): number
  after(delay: number, action: () => void): () => void
}

export type Options = { limit: number; gap?: number; timeout?: number; retries?: number; backoff?: number }

export type Task<T> = (attempt: number) => Promise<T>

export class TimeoutError extends Error {}

export class ClosedError extends Error {}

export class Pool {
  constructor(clock: Clock, options: Options) {
    throw new Error('Pool is not written yet')
  }

  run<T>(task: Task<T>): Promise<T> {
    throw new Error('run is not written yet')
  }

  idle(): Promise<void> {
    throw new Error('idle is not written yet')
  }

  close(): void {
    throw new Error('close is not written yet')
  }
}
