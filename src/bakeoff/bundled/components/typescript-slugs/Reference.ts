const LETTERS: Record<string, string> = { ß: 'ss', æ: 'ae', ø: 'o', '&': ' and ' };

export function slugify(title: string, longest = 40): string {
  const words = title
    .toLowerCase()
    .replace(/[ßæø&]/g, (letter) => LETTERS[letter])
    .normalize('NFD')
    .replace(/[\u0300-\u036f'’]/g, '')
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
  if (words.length === 0) return 'untitled';
  let slug = words[0].slice(0, longest);
  for (const word of words.slice(1)) {
    if (slug.length + 1 + word.length > longest) break;
    slug += `-${word}`;
  }
  return slug;
}

export function uniqueSlugs(titles: string[]): string[] {
  const slugs = titles.map((title) => slugify(title));
  const taken = new Set(slugs);
  const seen = new Set<string>();
  return slugs.map((slug) => {
    if (!seen.has(slug)) {
      seen.add(slug);
      return slug;
    }
    let number = 2;
    while (taken.has(`${slug}-${number}`)) number++;
    taken.add(`${slug}-${number}`);
    return `${slug}-${number}`;
  });
}
