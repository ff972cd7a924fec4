export function slugify(title: string, longest = 40): string {
  return title.toLowerCase().replace(/[^a-z0-9]+/g, '-').slice(0, longest);
}

export function uniqueSlugs(titles: string[]): string[] {
  const counts: Record<string, number> = {};
  return titles.map((title) => {
    const slug = slugify(title);
    counts[slug] = (counts[slug] ?? 0) + 1;
    return counts[slug] > 1 ? `${slug}-${counts[slug]}` : slug;
  });
}
