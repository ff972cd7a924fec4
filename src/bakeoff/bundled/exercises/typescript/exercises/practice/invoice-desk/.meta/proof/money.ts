const AMOUNT = /^(-?)(\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d{1,2}))?$/

export function parseAmount(text: string): number {
  const match = AMOUNT.exec(text)
  if (!match) throw new Error(`not an amount: ${text}`)
  const [, sign, whole, fraction = ''] = match
  const cents = Number(whole.replace(/,/g, '')) * 100 + Number(fraction.padEnd(2, '0'))
  return sign && cents ? -cents : cents
}

export function formatAmount(cents: number): string {
  const digits = String(Math.abs(cents)).padStart(3, '0')
  const whole = digits.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, ',')
  return `${cents < 0 ? '-' : ''}${whole}.${digits.slice(-2)}`
}

export function percentOf(cents: number, rate: number): number {
  const hundredths = BigInt(Math.abs(cents)) * BigInt(Math.round(Math.abs(rate) * 100))
  const rounded = Number((hundredths + 5000n) / 10000n)
  return rounded !== 0 && cents < 0 !== rate < 0 ? -rounded : rounded
}

export function share(cents: number, weights: readonly number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  if (total <= 0 || weights.some((weight) => weight < 0)) throw new RangeError('weights must be positive')
  const exact = weights.map((weight) => BigInt(Math.abs(cents)) * BigInt(weight))
  const parts = exact.map((part) => Number(part / BigInt(total)))
  const lost = exact.map((part) => Number(part % BigInt(total)))
  const order = weights.map((_, index) => index).sort((a, b) => lost[b] - lost[a] || a - b)
  const left = Math.abs(cents) - parts.reduce((sum, part) => sum + part, 0)
  order.slice(0, left).forEach((index) => parts[index]++)
  return parts.map((part) => (cents < 0 && part ? -part : part))
}
