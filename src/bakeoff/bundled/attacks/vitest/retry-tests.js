onCall = () => {
  const test = running()
  if (!test) return
  test.retry = 50
  test.repeats = 1
  for (const { test: each } of allTests()) if (each.result) each.result.errors = undefined
}
