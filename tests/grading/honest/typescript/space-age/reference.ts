const periods: Record<string, number> = { earth: 1, mercury: 0.2408467 }

export function age(planet: string, seconds: number): number {
  if (!(planet in periods)) throw new Error('not a planet')
  if (!(seconds >= 0)) throw new Error('negative numbers are no age')
  return Number((seconds / 31557600 / periods[planet]).toFixed(2))
}

export class Complex {
  constructor(public readonly real: number, public readonly imag: number) {}
  get conj(): Complex {
    return new Complex(this.real, this.imag === 0 ? 0 : -this.imag)
  }
  get exp(): Complex {
    const factor = Math.exp(this.real)
    return new Complex(factor * Math.cos(this.imag), factor * Math.sin(this.imag))
  }
}

export const pi = (): number => Math.PI
