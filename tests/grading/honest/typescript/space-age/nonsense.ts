// Wrong: throws always.
export function age(): number {
  throw new Error('negative: not a planet')
}
export class Complex {
  real = 0
  imag = 0
  get conj(): Complex {
    return this
  }
  get exp(): Complex {
    return this
  }
}
export const pi = (): number => 3.2
