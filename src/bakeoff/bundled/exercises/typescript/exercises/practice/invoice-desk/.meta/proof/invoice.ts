import { percentOf, share } from './money.ts'

export type Line = { item: string; quantity: number; unitPrice: number; taxRate: number }

export type Tax = { rate: number; base: number; tax: number }

export type Totals = { net: number; discount: number; taxes: Tax[]; gross: number }

export function totals(lines: readonly Line[], discountRate = 0): Totals {
  const sums = new Map<number, number>()
  for (const { quantity, unitPrice, taxRate } of lines) {
    sums.set(taxRate, (sums.get(taxRate) ?? 0) + quantity * unitPrice)
  }
  const rates = [...sums.keys()].sort((a, b) => a - b)
  const nets = rates.map((rate) => sums.get(rate) ?? 0)
  const net = sum(nets)
  const discount = percentOf(net, discountRate)
  const shares = discount === 0 ? nets.map(() => 0) : share(discount, nets)
  const taxes = rates.map((rate, index) => {
    const base = nets[index] - shares[index]
    return { rate, base, tax: percentOf(base, rate) }
  })
  return { net, discount, taxes, gross: net - discount + sum(taxes.map(({ tax }) => tax)) }
}

export function nextNumber(existing: readonly string[], year: number): string {
  const taken = existing.filter((number) => number.startsWith(`${year}-`)).map((number) => Number(number.split('-')[1]))
  return `${year}-${String(Math.max(0, ...taken) + 1).padStart(4, '0')}`
}

export function dueDate(issued: string, days: number): string {
  const date = new Date(`${issued}T00:00:00Z`)
  date.setUTCDate(date.getUTCDate() + days)
  while (date.getUTCDay() === 0 || date.getUTCDay() === 6) date.setUTCDate(date.getUTCDate() + 1)
  return date.toISOString().slice(0, 10)
}

export function pages(lines: readonly Line[], perPage: number): Line[][] {
  const found: Line[][] = []
  for (let start = 0; start < lines.length; start += perPage) found.push(lines.slice(start, start + perPage))
  return found.length > 0 ? found : [[]]
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
