import type { Operator, Tree, Value } from './parser.ts'

export function matches(tree: Tree, record: object): boolean {
  switch (tree.type) {
    case 'or':
      return tree.parts.some((part) => matches(part, record))
    case 'and':
      return tree.parts.every((part) => matches(part, record))
    case 'not':
      return !matches(tree.part, record)
    case 'has':
      return ![null, false, 0, ''].includes(lookUp(record, tree.name) as Value)
    case 'in':
      return tree.values.some((value) => lookUp(record, tree.name) === value)
    case 'compare':
      return holds(lookUp(record, tree.name), tree.operator, tree.value)
  }
}

function lookUp(record: object, name: string): unknown {
  let value: unknown = record
  for (const step of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return null
    value = (value as Record<string, unknown>)[step] ?? null
  }
  return value
}

function holds(left: unknown, operator: Operator, right: Value): boolean {
  if (operator === '=') return left === right
  if (operator === '!=') return left !== right
  if (typeof left === 'string' && typeof right === 'string') {
    return operator === '~' ? left.toLowerCase().includes(right.toLowerCase()) : ordered(left, operator, right)
  }
  return typeof left === 'number' && typeof right === 'number' && ordered(left, operator, right)
}

function ordered<T extends number | string>(left: T, operator: Operator, right: T): boolean {
  if (operator === '<') return left < right
  if (operator === '<=') return left <= right
  if (operator === '>') return left > right
  return operator === '>=' && left >= right
}
