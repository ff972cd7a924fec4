export type Kind = 'number' | 'string' | 'name' | 'keyword' | 'symbol'

export type Token = { kind: Kind; text: string; position: number }

export class FilterError extends Error {
  constructor(
    message: string,
    readonly position: number,
  ) {
    super(message)
    this.name = 'FilterError'
  }
}

export function tokenize(text: string): Token[] {
  throw new Error('tokenize is not written yet')
}
