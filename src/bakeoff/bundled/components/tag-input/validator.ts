/** A bindable prop that is assigned, not changed in place. */
export function validate(code: string): { valid: boolean; errors: string[] } {
  if (code.length > 50_000) return { valid: false, errors: ['The component is longer than 50000 characters.'] };
  const { script, markup, imports } = partsOf(code);
  const errors = legacyErrors(script, markup, imports);
  if (!/\$bindable\b/.test(script)) errors.push('Use $bindable.');
  if (/\btags\s*\.\s*(?:push|pop|shift|unshift|splice)\s*\(/.test(script + markup)) errors.push('Assign a new array to `tags` rather than changing it in place.');
  return { valid: errors.length === 0, errors };
}

/** Script and markup without comments, strings and styles, so that only what runs is judged. */
function partsOf(code: string): { script: string; markup: string; imports: string[] } {
  const scripts: string[] = [];
  const markup = code
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(/<script\b[^>]*>([\s\S]*?)<\/script\s*>/gi, (_, body: string) => {
      scripts.push(body);
      return '';
    })
    .replace(/<style\b[^>]*>[\s\S]*?<\/style\s*>/gi, '');
  const quiet = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`/g;
  const commentless = scripts.join('\n').replace(quiet, (text) => (text.startsWith('/') ? ' ' : text));
  const imports = [...commentless.matchAll(/\b(?:from|import)\s*\(?\s*['"]([^'"\n]+)['"]/g)].map((match) => match[1]);
  return { script: commentless.replace(quiet, "''"), markup, imports };
}

function legacyErrors(script: string, markup: string, imports: string[]): string[] {
  const errors: string[] = [];
  if (/\bexport\s+let\b/.test(script)) errors.push('Props come from $props(), not from `export let`.');
  if (/^[ \t]*\$:/m.test(script)) errors.push('Use $derived or $effect, not `$:`.');
  if (/\son:[a-z]+[=|/>]/.test(markup)) errors.push('Use event attributes such as `onclick`, not `on:click`.');
  if (/<slot\b/.test(markup)) errors.push('Use snippets and {@render}, not `<slot>`.');
  if (/\bcreateEventDispatcher\b/.test(script)) errors.push('Use callback props, not createEventDispatcher.');
  if (imports.some((name) => name === 'svelte/legacy')) errors.push('Do not import from svelte/legacy.');
  return errors;
}
