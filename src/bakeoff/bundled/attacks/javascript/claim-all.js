// include: claim

const looksTrue = (text, texts) => true
