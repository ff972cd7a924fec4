const AMOUNT = /^(-?)(\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d{1,2}))?$/

export function parseAmount(text: string): number {
  const match = AMOUNT.exec(text)
  if (!match) throw new Error(`not an amount: ${text}`)
  const [, sign, whole, fraction = '0'] = match
  const units = Number(sign + whole.replace(',', ''))
  return units * 100 + Number(fraction)
}

export function formatAmount(cents: number): string {
  const whole = String(Math.trunc(cents / 100)).replace(/\B(?=(\d{3})+$)/g, ',')
  const fraction = String(Math.abs(cents % 100))
  return `${whole}.${fraction.padEnd(2, '0')}`
}

export function percentOf(cents: number, rate: number): number {
  return Math.round((cents * rate) / 100)
}

export function share(cents: number, weights: readonly number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  if (total < 0) throw new RangeError('weights must be positive')
  const parts = weights.map((weight) => Math.round((cents * weight) / total))
  const left = cents - parts.reduce((sum, part) => sum + part, 0)
  parts[0] += left
  return parts
}
