// What only Vite and a whole Vitest can do: module mocks, snapshots, and what a script cannot hold.
const BUILTIN = '(?:Object|Function|Array|String|Number|Boolean|Symbol|RegExp|Promise|Proxy|Reflect|Map|Set|WeakMap|WeakSet|WeakRef|Error|TypeError|RangeError|JSON|Math|BigInt|Date\\s*\\.\\s*prototype)';
const HOLDER = `(?:(?:globalThis|window)\\s*\\.\\s*)?\\b${BUILTIN}(?:\\s*\\.\\s*prototype)?`;

// A test may replace what assertions are built on, a component may not; where one does, nothing can be frozen.
// `Math.random` is nothing that they are built on.
export const REPLACES_BUILTINS = new RegExp(
  `\\b(?:spyOn|defineProperty|replaceProperty)\\s*\\(\\s*${HOLDER}\\s*,(?!\\s*['"]random['"])|${HOLDER}\\s*\\.\\s*(?!random\\b)\\w+\\s*=(?![=>])`,
);

const BEYOND = [
  [/\bvi(?:test)?\s*\.\s*(?:mock|doMock|unmock|doUnmock|hoisted|importActual|importMock|resetModules|dynamicImportSettled)\b/, 'it mocks modules'],
  [/\bto(?:Match|ThrowErrorMatching)\w*Snapshot\b/, 'it uses snapshots'],
  [/\bimport\.meta\.glob\b/, 'it uses import.meta.glob'],
  [/\bimport\.meta\.(?:dirname|filename)\b|\b__(?:dirname|filename)\b/, 'it asks where it lies'],
  [/(?:from|import)\s*['"][^'"]*\?[^'"]*['"]|\bimport\s*\([^)]*\?/, 'it imports by a query'],
  [/['"]svelte\/(?:compiler|server)['"]/, 'it compiles or renders on a server'],
  [/@vitest-environment\b/, 'it chooses its environment'],
  [/\b(?:globalThis|window|global)\s*\.\s*(?:describe|vi|it|test|expect)\b/, 'it looks for globals'],
  [REPLACES_BUILTINS, 'it replaces what is built in'],
];

export function beyondUs(source) {
  return BEYOND.find(([pattern]) => pattern.test(source))?.[1];
}
