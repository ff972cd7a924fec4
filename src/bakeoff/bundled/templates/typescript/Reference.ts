export function initials(name: string, most = 2): string {
  const words = name.split(/[\s-]+/).filter((word) => word !== '');
  if (words.length === 0) return '?';
  const chosen = words.length > most ? [...words.slice(0, most - 1), words[words.length - 1]] : words;
  return chosen.map((word) => word[0].toUpperCase()).join('');
}
