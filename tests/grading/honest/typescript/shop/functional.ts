interface Item { readonly name: string; readonly count: number }

setTimeout(() => console.log('shop opens'), 0)
const beat = setInterval(() => {}, 10)
beat.unref()

export class Basket extends EventTarget {
  #counts = new Map<string, number>()
  onChange(listener: (item: Item) => void): void {
    this.addEventListener('change', (event) => listener((event as any).item))
  }
  add(name: string, count: number): void {
    if (!(count > 0)) throw new RangeError('count must be positive')
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + count)
    this.dispatchEvent(Object.assign(new Event('change'), { item: { name, count } }))
  }
  get items(): Item[] {
    return Array.from(this.#counts, ([name, count]) => ({ name, count }))
  }
  isEmpty(): boolean {
    return !this.#counts.size
  }
  get total(): number {
    return [...this.#counts.values()].reduce((a, b) => a + b, 0)
  }
}

export function greet(name: string): string {
  return ['Hello', name.length ? name : 'you'].join(', ').concat('!')
}

export const chunk = <T>(list: T[], size: number): T[][] => {
  if (size <= 0) throw new RangeError(`a size of ${size} is no size: sizes are positive`)
  return list.length ? [list.slice(0, size), ...chunk(list.slice(size), size)] : []
}

export function* flatten(list: any[]): Generator<any> {
  for (const each of list) {
    if (Array.isArray(each)) yield* flatten(each)
    else if (each !== null && each !== undefined) yield each
  }
}

export async function delayed<T>(ms: number, value: T): Promise<T> {
  if (ms < 0) throw new RangeError('that is past')
  await new Promise((resolve) => setTimeout(resolve, ms))
  return value
}

export const debounce = (call: () => void, ms: number) => {
  let due: ReturnType<typeof setTimeout> | undefined
  return () => {
    if (due) clearTimeout(due)
    due = setTimeout(() => call(), ms)
  }
}
