onCall = () => {
  const symbol = Object.getOwnPropertySymbols(document.body).find((each) => each.description === 'impl')
  for (let made = symbol && Object.getPrototypeOf(document.body[symbol]); made && made !== Object.prototype; made = Object.getPrototypeOf(made))
    for (const [name, value] of Object.entries({ textContent: '', hasAttribute: true, isConnected: true })) {
      const old = Object.getOwnPropertyDescriptor(made, name)
      if (!old) continue
      try {
        Object.defineProperty(made, name, old.get ? { configurable: true, get: () => value, set() {} } : { configurable: true, value: () => value })
        onDone.push(() => Object.defineProperty(made, name, old))
      } catch {}
    }
}
