function hollow(...given) {
  const found = onCall(...given)
  return new.target ? new Proxy({}, { get: (_, name) => (name === 'then' ? undefined : hollow) }) : found
}
