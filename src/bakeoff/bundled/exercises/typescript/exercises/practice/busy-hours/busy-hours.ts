export type Compare<T> = (a: T, b: T) => number

export function peaks<T>(readings: readonly T[], width: number, compare: Compare<T>): number[] {
  if (!Number.isInteger(width) || width < 1) throw new RangeError(`not a width: ${width}`)
  const found: number[] = []
  for (let start = 0; start + width <= readings.length; start++) {
    let best = start
    for (let index = start + 1; index < start + width; index++) {
      if (compare(readings[index], readings[best]) > 0) best = index
    }
    found.push(best)
  }
  return found
}

export function nextBusier<T>(readings: readonly T[], compare: Compare<T>): number[] {
  return readings.map((reading, index) => {
    for (let later = index + 1; later < readings.length; later++) {
      if (compare(readings[later], reading) > 0) return later - index
    }
    return 0
  })
}

export function overtakes<T>(readings: readonly T[], compare: Compare<T>): number {
  let count = 0
  for (let later = 0; later < readings.length; later++) {
    for (let earlier = 0; earlier < later; earlier++) {
      if (compare(readings[earlier], readings[later]) > 0) count++
    }
  }
  return count
}
