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

const KEYWORDS = new Set(['and', 'or', 'not', 'in', 'true', 'false', 'null'])
const SPACE = /[ \t\r\n]+/y
const PLAIN: readonly [Kind, RegExp][] = [
  ['number', /-?\d+(?:\.\d+)?/y],
  ['name', /[a-z_]\w*(?:\.[a-z_]\w*)*/iy],
  ['symbol', /!=|<=|>=|[=<>~()[\],]/y],
]

export function tokenize(text: string): Token[] {
  const tokens: Token[] = []
  let position = skip(text, 0)
  while (position < text.length) {
    const token = text[position] === '"' ? stringAt(text, position) : plainAt(text, position)
    tokens.push(token)
    position = skip(text, position + token.text.length)
  }
  return tokens
}

function skip(text: string, position: number): number {
  return position + (matchAt(SPACE, text, position)?.length ?? 0)
}

function plainAt(text: string, position: number): Token {
  for (const [kind, pattern] of PLAIN) {
    const found = matchAt(pattern, text, position)
    if (found === undefined) continue
    const isKeyword = kind === 'name' && KEYWORDS.has(found.toLowerCase())
    return { kind: isKeyword ? 'keyword' : kind, text: found, position }
  }
  throw new FilterError(`unexpected character ${text[position]}`, position)
}

function stringAt(text: string, start: number): Token {
  for (let position = start + 1; position < text.length; position++) {
    const character = text[position]
    if (character === '"') return { kind: 'string', text: text.slice(start, position + 1), position: start }
    if (character === '\n' || character === '\r') break
    if (character !== '\\') continue
    if (position + 1 === text.length) break
    if (!'"\\n'.includes(text[position + 1])) throw new FilterError('no such escape', position)
    position++
  }
  throw new FilterError('string without an end', start)
}

function matchAt(pattern: RegExp, text: string, position: number): string | undefined {
  pattern.lastIndex = position
  return pattern.exec(text)?.[0]
}
