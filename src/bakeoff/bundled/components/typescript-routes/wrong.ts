export function createRouter(routes: Record<string, string>) {
  return (path: string) => {
    for (const [name, pattern] of Object.entries(routes)) {
      const expression = pattern.replace(/:(\w+)/g, '(?<$1>[^/]*)').replace('*', '(.*)');
      const found = new RegExp(`^${expression}$`).exec(path);
      if (found) return { name, params: { ...found.groups } };
    }
    return null;
  };
}
