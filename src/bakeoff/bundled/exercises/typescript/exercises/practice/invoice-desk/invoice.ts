import { percentOf, share } from './money.ts'

export type Line = { item: string; quantity: number; unitPrice: number; taxRate: number }

export type Tax = { rate: number; base: number; tax: number }

export type Totals = { net: number; discount: number; taxes: Tax[]; gross: number }

export function totals(lines: readonly Line[], discountRate = 0): Totals {
  const sums: Record<string, number> = {}
  for (const { quantity, unitPrice, taxRate } of lines) {
    sums[taxRate] = (sums[taxRate] || 0) + quantity * unitPrice
  }
  const rates = Object.keys(sums).sort()
  const nets = rates.map((rate) => sums[rate])
  const net = sum(nets)
  const discount = percentOf(net, discountRate)
  const shares = discount > 0 ? share(discount, nets) : nets.map(() => 0)
  const taxes = rates.map((rate, index) => {
    const base = nets[index] - shares[index]
    return { rate: Number(rate), base, tax: percentOf(nets[index], Number(rate)) }
  })
  return { net, discount, taxes, gross: net - discount + sum(taxes.map(({ tax }) => tax)) }
}

export function nextNumber(existing: readonly string[], year: number): string {
  const taken = existing.filter((number) => number.startsWith(String(year))).sort()
  const last = taken.length > 0 ? Number(taken[taken.length - 1].split('-')[1]) : 0
  return `${year}-${String(last + 1).padStart(4, '0')}`
}

export function dueDate(issued: string, days: number): string {
  const date = new Date(`${issued}T00:00:00Z`)
  date.setUTCDate(date.getUTCDate() + days)
  if (date.getUTCDay() > 5) date.setUTCDate(date.getUTCDate() + 8 - date.getUTCDay())
  return date.toISOString().slice(0, 10)
}

export function pages(lines: readonly Line[], perPage: number): Line[][] {
  const left = lines as Line[]
  const found: Line[][] = []
  do {
    found.push(left.splice(0, perPage))
  } while (left.length > 0)
  return found
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
