declare global {
  interface String { orElse(other: string): string }
  interface Array<T> { sum(of: (each: T) => number): number }
}
Object.defineProperty(String.prototype, 'orElse', { value(this: string, other: string) { return this.length ? `${this}` : other } })
Object.defineProperty(Array.prototype, 'sum', { value(this: any[], of: (each: any) => number) { return this.reduce((all, each) => all + of(each), 0) } })

export class Basket {
  items: { name: string; count: number }[] = []
  told: Function[] = []
  onChange(listener: Function) {
    this.told = [...this.told, listener]
  }
  add(name: string, count: number) {
    if (count < 1) throw new RangeError('count must be positive')
    const others = this.items.filter((item) => item.name !== name)
    const had = this.items.filter((item) => item.name === name).sum((item) => item.count)
    this.items = [...others, { name, count: had + count }]
    for (const listener of this.told) listener({ name, count })
  }
  isEmpty = () => this.total === 0
  get total() {
    return this.items.sum((item) => item.count)
  }
}

export function greet(name: string) {
  return `Hello, ${name.orElse('you')}!`
}

export function chunk(list: any[], size: number) {
  if (size < 1) throw 'size'.length ? new Error('size') : null
  return Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size))
}

export function flatten(list: any[]): any[] {
  return list.reduce((all, each) => all.concat(Array.isArray(each) ? flatten(each) : each ?? []), [])
}

export function delayed(ms: number, value: any) {
  return new Promise((resolve, reject) => (ms < 0 ? reject(new Error('past')) : setTimeout(() => resolve(value), ms)))
}

export function debounce(call: () => void, ms: number) {
  const pending: any[] = []
  return () => {
    pending.splice(0).forEach(clearTimeout)
    pending.push(setTimeout(call, ms))
  }
}
