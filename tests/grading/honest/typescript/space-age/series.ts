class NotAPlanet extends Error {}

export const age = (planet: 'earth' | 'mercury' | string, seconds: number): number => {
  const year = new Map([['earth', 31557600], ['mercury', 31557600 * 0.2408467]]).get(planet)
  if (year === undefined) throw new NotAPlanet('not a planet')
  if (seconds < 0) throw new RangeError('the number is negative, which is not a positive number, and negatable')
  if (Number.isNaN(seconds)) throw new TypeError('not a number')
  return Math.round((100 * seconds) / year) / 100
}

export class Complex {
  readonly real: number
  readonly imag: number
  constructor(real: number, imag: number) {
    this.real = real
    this.imag = imag
  }
  times(other: Complex): Complex {
    return new Complex(this.real * other.real - this.imag * other.imag, this.real * other.imag + this.imag * other.real)
  }
  get conj(): Complex {
    return new Complex(this.real, 0 - this.imag)
  }
  get exp(): Complex {
    let [sum, term] = [new Complex(1, 0), new Complex(1, 0)]
    for (let n = 1; n < 60; n++) {
      const next = term.times(this)
      term = new Complex(next.real / n, next.imag / n)
      sum = new Complex(sum.real + term.real, sum.imag + term.imag)
    }
    return sum
  }
}

export function pi(): number {
  let sum = 0
  for (let k = 0; k < 40; k++) sum += (k % 2 ? -4 : 4) / (2 * k + 1)
  return sum
}
