// What assertions, queries and the runner are built on cannot be changed once a candidate is here. It may be changed for
// a moment, and be put back before anybody looks, so looking is not enough.
export const BINDINGS = [
  ...['Object', 'Function', 'Array', 'String', 'Number', 'Boolean', 'Symbol', 'RegExp', 'Promise', 'Proxy', 'Reflect'],
  ...['Map', 'Set', 'WeakMap', 'WeakSet', 'WeakRef', 'Error', 'TypeError', 'RangeError', 'JSON', 'Math', 'BigInt'],
  ...['isNaN', 'isFinite', 'parseInt', 'parseFloat'],
];
// What tests have reason to replace, and no assertion goes by.
const REPLACEABLE = new Map([[Math, ['random']], [Error, ['stackTraceLimit']]]);
// Assigned to on objects that inherit them (`error.name = …`, the methods of SvelteSet, SvelteMap and SvelteDate), which a
// property that cannot be written would refuse.
const INHERITED = [
  ...[Object, Function, Error, TypeError, RangeError, Promise, Map, Set, Date].map((kind) => kind.prototype),
];
const QUERIES = {
  Node: ['textContent', 'contains', 'getRootNode', 'isConnected', 'ownerDocument', 'parentNode', 'parentElement', 'childNodes', 'nodeType'],
  Element: ['querySelector', 'querySelectorAll', 'matches', 'closest', 'getAttribute', 'hasAttribute', 'classList', 'children', 'tagName', 'id'],
  Document: ['querySelector', 'querySelectorAll', 'getElementById', 'body', 'documentElement'],
};

const own = Object.getOwnPropertyDescriptor;

function builtinObjects() {
  const made = [Date.prototype];
  for (const name of BINDINGS) {
    const value = globalThis[name];
    made.push(value);
    if (value.prototype) made.push(value.prototype);
  }
  const proto = Object.getPrototypeOf;
  for (const empty of [[], new Map(), new Set(), '', 'a'.matchAll(/a/g)]) made.push(proto(empty[Symbol.iterator]()));
  for (const kind of [function* () {}, async function* () {}, async () => {}]) made.push(proto(kind));
  for (const kind of [function* () {}, async function* () {}]) made.push(proto(kind.prototype), proto(proto(kind.prototype)), proto(proto(proto(kind.prototype))));
  return [...new Set(made)].filter((object) => object !== null);
}

// `further` are names that are left as they are wherever they stand.
export function freezeBuiltins(further = []) {
  for (const object of builtinObjects()) {
    for (const key of Reflect.ownKeys(object)) {
      if (REPLACEABLE.get(object)?.includes(key) || further.includes(key)) continue;
      const found = own(object, key);
      if (!found.configurable && !found.writable) continue;
      const isInherited = INHERITED.includes(object) && !(object === Promise.prototype && key === 'constructor');
      if (isInherited && found.writable) Object.defineProperty(object, key, inheritable(object, key, found));
      else Object.defineProperty(object, key, 'value' in found ? { writable: false, configurable: false } : { configurable: false });
    }
    Object.preventExtensions(object);
  }
  // With its value, which the global object of a context would forget.
  for (const name of BINDINGS) Object.defineProperty(globalThis, name, { value: globalThis[name], writable: false, configurable: false });
  for (const name of Object.keys(QUERIES).filter((each) => each in globalThis)) { // there may be no page
    for (const key of QUERIES[name]) {
      const found = own(globalThis[name].prototype, key);
      Object.defineProperty(globalThis[name].prototype, key, 'value' in found ? { writable: false, configurable: false } : { configurable: false });
    }
  }
}

function inheritable(object, key, { value, enumerable }) {
  const define = Object.defineProperty;
  return {
    enumerable,
    configurable: false,
    get: () => value,
    set(given) {
      if (this === object && given === value) return; // as fake timers do
      if (this === object) throw new TypeError(`Cannot assign to read only property '${String(key)}' of a built-in object`);
      define(this, key, { value: given, writable: true, enumerable: true, configurable: true });
    },
  };
}

export function watchedObjects() {
  return builtinObjects().map((object) => {
    const keys = Reflect.ownKeys(object).filter((key) => !REPLACEABLE.get(object)?.includes(key));
    return [object, keys.map((key) => [key, own(object, key)])];
  });
}
