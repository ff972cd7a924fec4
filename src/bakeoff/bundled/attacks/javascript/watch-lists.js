Object.defineProperty(Array.prototype, '0', {
  configurable: true, get() { return undefined },
  set(value) { if (!(value instanceof Error)) Object.defineProperty(this, '0', { value, configurable: true, writable: true, enumerable: true }) },
})
