export type Align = 'left' | 'right' | 'center'

export type Options = { align?: Align[]; max?: number }

const WIDE: readonly [number, number][] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0xa4cf],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe4f],
  [0xff01, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f300, 0x1f64f],
  [0x1f680, 0x1f6ff],
  [0x1f900, 0x1f9ff],
  [0x20000, 0x3fffd],
]
const FLAG = /^[\u{1F1E6}-\u{1F1FF}]{2}$/u
const INVISIBLE = /^[\p{Cc}\p{Cf}\p{Mn}\p{Me}]/u
const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })

export function width(text: string): number {
  return characters(text).reduce((sum, character) => sum + widthOf(character), 0)
}

export function fit(text: string, columns: number, align: Align = 'left'): string {
  const content = cut(tidy(text), columns)
  const space = columns - width(content)
  const before = { left: 0, right: space, center: Math.floor(space / 2) }[align]
  return ' '.repeat(before) + content + ' '.repeat(space - before)
}

export function table(rows: readonly (readonly string[])[], options: Options = {}): string {
  if (rows.length === 0) return ''
  const count = Math.max(...rows.map((row) => row.length))
  const columns = Array.from({ length: count }, (_, column) => {
    const widest = Math.max(...rows.map((row) => width(tidy(row[column] ?? ''))))
    return Math.min(widest, options.max ?? widest)
  })
  const lines = rows.map((row) =>
    columns
      .map((size, column) => fit(row[column] ?? '', size, options.align?.[column]))
      .join(' │ ')
      .trimEnd(),
  )
  const rule = columns.map((size) => '─'.repeat(size)).join('─┼─')
  return [lines[0], rule, ...lines.slice(1)].join('\n')
}

function characters(text: string): string[] {
  return Array.from(segmenter.segment(text), ({ segment }) => segment)
}

function widthOf(character: string): number {
  const first = character.codePointAt(0) ?? 0
  if (character.includes('\uFE0F') || FLAG.test(character)) return 2
  if (WIDE.some(([low, high]) => low <= first && first <= high)) return 2
  return INVISIBLE.test(character) ? 0 : 1
}

function tidy(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

function cut(text: string, columns: number): string {
  if (width(text) <= columns) return text
  if (columns < 1) return ''
  let kept = ''
  let used = 0
  for (const character of characters(text)) {
    used += widthOf(character)
    if (used > columns - 1) break
    kept += character
  }
  return `${kept.trimEnd()}…`
}
