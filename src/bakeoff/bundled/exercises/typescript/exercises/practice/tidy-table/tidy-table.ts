export type Align = 'left' | 'right' | 'center'

export type Options = { align?: Align[]; max?: number }

export function width(text: string): number {
  throw new Error('width is not written yet')
}

export function fit(text: string, columns: number, align: Align = 'left'): string {
  throw new Error('fit is not written yet')
}

export function table(rows: readonly (readonly string[])[], options: Options = {}): string {
  throw new Error('table is not written yet')
}
