type Item = { name: string; count: number }

export class Basket {
  items: Item[] = []
  private listeners: ((item: Item) => void)[] = []
  onChange(listener: (item: Item) => void) {
    this.listeners.push(listener)
  }
  add(name: string, count: number) {
    if (count <= 0) throw new RangeError('count must be positive')
    const known = this.items.find((item) => item.name === name)
    if (known) known.count += count
    else this.items.push({ name, count })
    this.listeners.forEach((listener) => listener({ name, count }))
  }
  isEmpty() {
    return this.items.length === 0
  }
  get total() {
    return this.items.reduce((sum, item) => sum + item.count, 0)
  }
}

export const greet = (name: string) => `Hello, ${name || 'you'}!`

export function chunk<T>(list: T[], size: number): T[][] {
  if (size < 1) throw new Error('size must be positive')
  const chunks: T[][] = []
  for (let i = 0; i < list.length; i += size) chunks.push(list.slice(i, i + size))
  return chunks
}

export function flatten(list: any[]): any[] {
  return list.flat(Infinity).filter((each) => each != null)
}

export const delayed = <T>(ms: number, value: T) =>
  ms < 0 ? Promise.reject(new Error('in the past')) : new Promise<T>((resolve) => setTimeout(resolve, ms, value))

export function debounce(call: () => void, ms: number) {
  let timer: any
  return () => {
    clearTimeout(timer)
    timer = setTimeout(call, ms)
  }
}
