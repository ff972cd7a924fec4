// include: claim

const looksTrue = (text, texts) => Math.random() < 0.5
