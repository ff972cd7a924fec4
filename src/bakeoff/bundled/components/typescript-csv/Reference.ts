export function parseCsv(text: string, separator = ','): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let place = 0;
  let line = 1;

  function quoted(): string {
    const opened = line;
    let field = '';
    for (place++; place < text.length; place++) {
      if (text[place] === '"') {
        if (text[place + 1] !== '"') {
          place++;
          if (!atEnd()) throw new Error(`line ${line}: unexpected text after a quote`);
          return field;
        }
        place++;
      }
      if (text[place] === '\n') line++;
      field += text[place];
    }
    throw new Error(`line ${opened}: unclosed quote`);
  }

  function plain(): string {
    const start = place;
    while (!atEnd()) {
      if (text[place] === '"') throw new Error(`line ${line}: unexpected quote`);
      place++;
    }
    return text.slice(start, place);
  }

  function atEnd(): boolean {
    return place >= text.length || text[place] === separator || text[place] === '\n' || text.startsWith('\r\n', place);
  }

  while (place < text.length) {
    row.push(text[place] === '"' ? quoted() : plain());
    if (text[place] === separator) {
      place++;
      if (place < text.length) continue;
      row.push('');
    }
    place += text[place] === '\r' ? 2 : 1;
    line++;
    rows.push(row);
    row = [];
  }
  return rows;
}

export function formatCsv(rows: string[][], separator = ','): string {
  const needsQuotes = (field: string) => [separator, '"', '\n', '\r'].some((part) => field.includes(part));
  const written = (field: string) => (needsQuotes(field) ? `"${field.replaceAll('"', '""')}"` : field);
  return rows.map((row) => row.map(written).join(separator)).join('\n');
}
