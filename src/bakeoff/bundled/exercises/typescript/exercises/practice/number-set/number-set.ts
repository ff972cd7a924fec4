export type Range = [from: number, to: number]

export class NumberSet implements Iterable<number> {
  get size(): number {
    throw new Error('size is not written yet')
  }

  add(from: number, to: number = from): this {
    throw new Error('add is not written yet')
  }

  remove(from: number, to: number = from): this {
    throw new Error('remove is not written yet')
  }

  has(number: number): boolean {
    throw new Error('has is not written yet')
  }

  ranges(): Range[] {
    throw new Error('ranges is not written yet')
  }

  union(other: NumberSet): NumberSet {
    throw new Error('union is not written yet')
  }

  intersection(other: NumberSet): NumberSet {
    throw new Error('intersection is not written yet')
  }

  difference(other: NumberSet): NumberSet {
    throw new Error('difference is not written yet')
  }

  [Symbol.iterator](): IterableIterator<number> {
    throw new Error('the iterator is not written yet')
  }

  from(start: number): IterableIterator<number> {
    throw new Error('from is not written yet')
  }

  descending(): IterableIterator<number> {
    throw new Error('descending is not written yet')
  }

  toString(): string {
    throw new Error('toString is not written yet')
  }
}
