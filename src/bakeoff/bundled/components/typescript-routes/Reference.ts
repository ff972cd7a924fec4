export interface Match {
  name: string;
  params: Record<string, string>;
}

interface Route {
  name: string;
  parts: string[];
}

function split(path: string): string[] {
  return path.replace(/[?#].*$/s, '').replace(/^\//, '').replace(/\/$/, '').split('/');
}

function check(pattern: string, parts: string[]): void {
  if (parts.slice(0, -1).includes('*')) throw new Error(`${pattern}: the rest must be the last segment`);
  const names = parts.filter((part) => part.startsWith(':')).map((part) => part.slice(1));
  const twice = names.find((name, place) => names.indexOf(name) !== place);
  if (twice !== undefined) throw new Error(`${pattern}: ${twice} is there twice`);
}

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}

function paramsOf(parts: string[], segments: string[]): Record<string, string> | null {
  const params: Record<string, string> = {};
  for (const [place, part] of parts.entries()) {
    if (part === '*') {
      const rest = segments.slice(place).join('/');
      return rest === '' ? null : { ...params, '*': rest };
    }
    const segment = segments[place];
    if (part.startsWith(':')) {
      const text = segment ? decoded(segment) : null;
      if (text === null) return null;
      params[part.slice(1)] = text;
    } else if (part !== segment) {
      return null;
    }
  }
  return segments.length > parts.length ? null : params;
}

/** A text that is smaller the better a route is. */
function rank({ parts }: Route): string {
  return parts.map((part) => (part === '*' ? '2' : part.startsWith(':') ? '1' : '0')).join('');
}

export function createRouter(patterns: Record<string, string>): (path: string) => Match | null {
  const routes = Object.entries(patterns).map(([name, pattern]) => {
    const parts = split(pattern);
    check(pattern, parts);
    return { name, parts };
  });
  routes.sort((one, other) => (rank(one) < rank(other) ? -1 : rank(one) > rank(other) ? 1 : 0));

  return (path) => {
    const segments = split(path);
    for (const { name, parts } of routes) {
      const params = paramsOf(parts, segments);
      if (params !== null) return { name, params };
    }
    return null;
  };
}
