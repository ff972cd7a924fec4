export type Range = [from: number, to: number]

export class NumberSet implements Iterable<number> {
  private runs: Range[] = []

  get size(): number {
    return this.runs.reduce((sum, [from, to]) => sum + (to - from + 1), 0)
  }

  add(from: number, to: number = from): this {
    check(from, to)
    const start = this.runs.findIndex((run) => run[1] >= from - 1)
    const first = start === -1 ? this.runs.length : start
    let last = first
    const merged: Range = [from, to]
    while (last < this.runs.length && this.runs[last][0] <= to + 1) {
      merged[0] = Math.min(merged[0], this.runs[last][0])
      merged[1] = Math.max(merged[1], this.runs[last][1])
      last++
    }
    this.runs.splice(first, last - first, merged)
    return this
  }

  remove(from: number, to: number = from): this {
    check(from, to)
    this.runs = this.runs.flatMap(([low, high]): Range[] => {
      if (high < from || low > to) return [[low, high]]
      const left: Range[] = low < from ? [[low, from - 1]] : []
      return high > to ? [...left, [to + 1, high]] : left
    })
    return this
  }

  has(number: number): boolean {
    const run = this.runs[this.indexFrom(number)]
    return Number.isInteger(number) && run !== undefined && run[0] <= number
  }

  ranges(): Range[] {
    return this.runs.map(([from, to]) => [from, to])
  }

  union(other: NumberSet): NumberSet {
    return this.copyAnd((copy) => other.runs.forEach(([from, to]) => copy.add(from, to)))
  }

  intersection(other: NumberSet): NumberSet {
    return this.difference(this.difference(other))
  }

  difference(other: NumberSet): NumberSet {
    return this.copyAnd((copy) => other.runs.forEach(([from, to]) => copy.remove(from, to)))
  }

  [Symbol.iterator](): IterableIterator<number> {
    return this.from(Number.NEGATIVE_INFINITY)
  }

  *from(start: number): IterableIterator<number> {
    let least = start
    for (;;) {
      const run = this.runs[this.indexFrom(least)]
      if (run === undefined) return
      const number = Math.max(Math.ceil(least), run[0])
      yield number
      least = number + 1
    }
  }

  *descending(): IterableIterator<number> {
    let most = Number.POSITIVE_INFINITY
    for (;;) {
      let index = this.indexFrom(most)
      if (index === this.runs.length || this.runs[index][0] > most) index--
      if (index < 0) return
      const number = Math.min(most, this.runs[index][1])
      yield number
      most = number - 1
    }
  }

  toString(): string {
    return `{${this.runs.map(([from, to]) => (from === to ? `${from}` : `${from}..${to}`)).join(', ')}}`
  }

  /** The index of the first run that ends at the number or after it. */
  private indexFrom(number: number): number {
    let [low, high] = [0, this.runs.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.runs[middle][1] < number) low = middle + 1
      else high = middle
    }
    return low
  }

  private copyAnd(change: (copy: NumberSet) => void): NumberSet {
    const copy = new NumberSet()
    copy.runs = this.ranges()
    change(copy)
    return copy
  }
}

function check(from: number, to: number): void {
  if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || to < from) {
    throw new RangeError(`not a range: ${from} to ${to}`)
  }
}
