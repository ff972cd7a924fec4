export type Compare<T> = (a: T, b: T) => number

/** Keeps the indexes that may still become the peak of a window, greatest reading first. */
export function peaks<T>(readings: readonly T[], width: number, compare: Compare<T>): number[] {
  if (!Number.isInteger(width) || width < 1) throw new RangeError(`not a width: ${width}`)
  const found: number[] = []
  const candidates: number[] = []
  let head = 0
  for (let index = 0; index < readings.length; index++) {
    if (head < candidates.length && candidates[head] <= index - width) head++
    while (candidates.length > head && compare(readings[index], readings[candidates[candidates.length - 1]]) > 0) {
      candidates.pop()
    }
    candidates.push(index)
    if (index >= width - 1) found.push(candidates[head])
  }
  return found
}

/** Keeps the indexes that still wait for a greater reading; the last of them waits for the least. */
export function nextBusier<T>(readings: readonly T[], compare: Compare<T>): number[] {
  const steps: number[] = new Array(readings.length).fill(0)
  const waiting: number[] = []
  readings.forEach((reading, index) => {
    while (waiting.length > 0 && compare(reading, readings[waiting[waiting.length - 1]]) > 0) {
      const earlier = waiting.pop() as number
      steps[earlier] = index - earlier
    }
    waiting.push(index)
  })
  return steps
}

export function overtakes<T>(readings: readonly T[], compare: Compare<T>): number {
  return sortAndCount(readings, compare).count
}

function sortAndCount<T>(readings: readonly T[], compare: Compare<T>): { sorted: readonly T[]; count: number } {
  if (readings.length < 2) return { sorted: readings, count: 0 }
  const middle = readings.length >> 1
  const left = sortAndCount(readings.slice(0, middle), compare)
  const right = sortAndCount(readings.slice(middle), compare)
  let count = left.count + right.count
  const sorted: T[] = []
  let [l, r] = [0, 0]
  while (l < left.sorted.length && r < right.sorted.length) {
    if (compare(left.sorted[l], right.sorted[r]) > 0) {
      count += left.sorted.length - l
      sorted.push(right.sorted[r++])
    } else {
      sorted.push(left.sorted[l++])
    }
  }
  return { sorted: [...sorted, ...left.sorted.slice(l), ...right.sorted.slice(r)], count }
}
