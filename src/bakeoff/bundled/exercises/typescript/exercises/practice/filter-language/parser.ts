export type Value = number | string | boolean | null

export type Operator = '=' | '!=' | '<' | '<=' | '>' | '>=' | '~'

export type Tree =
  | { type: 'or'; parts: Tree[] }
  | { type: 'and'; parts: Tree[] }
  | { type: 'not'; part: Tree }
  | { type: 'has'; name: string }
  | { type: 'compare'; name: string; operator: Operator; value: Value }
  | { type: 'in'; name: string; values: Value[] }

export function parse(text: string): Tree {
  throw new Error('parse is not written yet')
}

export function print(tree: Tree): string {
  throw new Error('print is not written yet')
}
