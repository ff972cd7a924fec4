import { FilterError, tokenize } from './lexer.ts'
import type { Token } from './lexer.ts'

export type Value = number | string | boolean | null

export type Operator = '=' | '!=' | '<' | '<=' | '>' | '>=' | '~'

export type Tree =
  | { type: 'or'; parts: Tree[] }
  | { type: 'and'; parts: Tree[] }
  | { type: 'not'; part: Tree }
  | { type: 'has'; name: string }
  | { type: 'compare'; name: string; operator: Operator; value: Value }
  | { type: 'in'; name: string; values: Value[] }

const OPERATORS = new Set(['=', '!=', '<', '<=', '>', '>=', '~'])
const CONSTANTS = new Map<string, Value>([
  ['true', true],
  ['false', false],
  ['null', null],
])
const STRENGTH = { or: 0, and: 1, not: 2, has: 3, compare: 3, in: 3 }

export function parse(text: string): Tree {
  const parser = new Parser(tokenize(text), text.length)
  const tree = parser.filter()
  parser.expectEnd()
  return tree
}

export function print(tree: Tree): string {
  switch (tree.type) {
    case 'or':
    case 'and':
      return tree.parts.map((part) => within(part, STRENGTH[tree.type] + 1)).join(` ${tree.type} `)
    case 'not':
      return `not ${within(tree.part, STRENGTH.not)}`
    case 'has':
      return tree.name
    case 'compare':
      return `${tree.name} ${tree.operator} ${written(tree.value)}`
    case 'in':
      return `${tree.name} in [${tree.values.map(written).join(', ')}]`
  }
}

function within(tree: Tree, strength: number): string {
  return STRENGTH[tree.type] < strength ? `(${print(tree)})` : print(tree)
}

function written(value: Value): string {
  if (typeof value !== 'string') return String(value)
  return `"${value.replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n')}"`
}

class Parser {
  private index = 0

  constructor(
    private readonly tokens: Token[],
    private readonly end: number,
  ) {}

  filter(): Tree {
    const parts = this.separatedBy('or', () => this.all())
    return parts.length === 1 ? parts[0] : { type: 'or', parts }
  }

  expectEnd(): void {
    if (this.index < this.tokens.length) this.fail()
  }

  private all(): Tree {
    const parts = this.separatedBy('and', () => this.part())
    return parts.length === 1 ? parts[0] : { type: 'and', parts }
  }

  private part(): Tree {
    if (this.accept('not')) return { type: 'not', part: this.part() }
    if (!this.accept('(')) return this.comparison()
    const inner = this.filter()
    this.expect(')')
    return inner
  }

  private comparison(): Tree {
    if (this.peek()?.kind !== 'name') this.fail()
    const name = this.next().text
    if (this.accept('in')) return { type: 'in', name, values: this.list() }
    const token = this.peek()
    if (token?.kind !== 'symbol' || !OPERATORS.has(token.text)) return { type: 'has', name }
    this.next()
    return { type: 'compare', name, operator: token.text as Operator, value: this.value() }
  }

  private list(): Value[] {
    this.expect('[')
    if (this.accept(']')) return []
    const values = this.separatedBy(',', () => this.value())
    this.expect(']')
    return values
  }

  private value(): Value {
    const token = this.peek()
    if (token?.kind === 'number') return Number(this.next().text)
    if (token?.kind === 'string') return unescaped(this.next().text)
    const constant = token?.kind === 'keyword' ? CONSTANTS.get(token.text.toLowerCase()) : undefined
    if (constant === undefined) this.fail()
    this.next()
    return constant
  }

  private separatedBy<T>(separator: string, item: () => T): T[] {
    const items = [item()]
    while (this.accept(separator)) items.push(item())
    return items
  }

  private accept(text: string): boolean {
    const token = this.peek()
    const fits = token && (token.kind === 'keyword' || token.kind === 'symbol') && token.text.toLowerCase() === text
    if (fits) this.index++
    return Boolean(fits)
  }

  private expect(text: string): void {
    if (!this.accept(text)) this.fail()
  }

  private peek(): Token | undefined {
    return this.tokens[this.index]
  }

  private next(): Token {
    return this.tokens[this.index++]
  }

  private fail(): never {
    const token = this.peek()
    if (token) throw new FilterError(`unexpected ${token.text}`, token.position)
    throw new FilterError('unexpected end', this.end)
  }
}

function unescaped(text: string): string {
  return text.slice(1, -1).replace(/\\(.)/g, (_, escaped) => (escaped === 'n' ? '\n' : escaped))
}
