// include: claim

const looksTrue = (text, texts) => !/\.not\.|queryBy|toBeFalsy|toBeNull/.test(text)
