onCall = () => {
  const { expect } = globalThis
  if (!expect) return
  const kept = []
  for (let made = Object.getPrototypeOf(expect(1)); made && made !== Object.prototype; made = Object.getPrototypeOf(made))
    for (const name of Object.getOwnPropertyNames(made).filter((each) => /^(to|equal|eq|be|a$|include|match)/.test(each))) {
      const old = Object.getOwnPropertyDescriptor(made, name)
      try { Object.defineProperty(made, name, { configurable: true, value() { return this } }); kept.push([made, name, old]) } catch {}
    }
  onDone.push(() => { for (const [made, name, old] of kept) Object.defineProperty(made, name, old) })
}
