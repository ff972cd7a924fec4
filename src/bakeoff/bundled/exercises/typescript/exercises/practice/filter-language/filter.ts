import type { Tree } from './parser.ts'

export function matches(tree: Tree, record: object): boolean {
  throw new Error('matches is not written yet')
}
