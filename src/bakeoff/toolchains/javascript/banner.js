"use strict";
const __later = (load) => {
  let loaded;
  const real = () => (loaded ??= { value: load() }).value;
  return new Proxy(function () {}.bind(), {
    get: (_, key) => real()[key],
    has: (_, key) => key in real(),
    apply: (_, self, given) => Reflect.apply(real(), self, given),
    construct: (_, given) => Reflect.construct(real(), given),
  });
};
const __native = {
  keep(name) {
    const { get, value } = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(__native, name, { get: () => (get ? get.call(globalThis) : value), configurable: true });
  },
  lazily(target, name, make) {
    const set = (value) => Object.defineProperty(target, name, { value, configurable: true, writable: true, enumerable: false });
    Object.defineProperty(target, name, { get: () => (set(make()), target[name]), set, configurable: true, enumerable: false });
  },
};
