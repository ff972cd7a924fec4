export function parseCsv(text: string, separator = ','): string[][] {
  return text.split('\n').map((line) => line.split(separator).map((field) => field.trim().replace(/^"|"$/g, '')));
}

export function formatCsv(rows: string[][], separator = ','): string {
  return rows.map((row) => row.map((field) => `"${field}"`).join(separator)).join('\n');
}
