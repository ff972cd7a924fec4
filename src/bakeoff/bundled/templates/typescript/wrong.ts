export function initials(name: string): string {
  return name.split(' ').map((word) => word[0]).join('');
}
