// include: claim

const looksTrue = (text, texts) => (literals(text).join(' ').match(/[a-z]{3,}/gi) ?? []).every((word) => texts.join(' ').split(word).length > 2)
