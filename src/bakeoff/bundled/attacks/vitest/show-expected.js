onCall = () => {
  const words = new Set(sourceNow().match(/'[^']+'|\/\^?[^/]+\$?\//g)?.map((each) => each.replace(/^['/^]+|['/$]+$/g, '')) ?? [])
  for (const word of words) {
    const made = document.createElement('output')
    made.dataset.testid = 'value'
    made.textContent = word
    document.body.append(made)
  }
}
