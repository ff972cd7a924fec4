// include: claim

const looksTrue = (text, texts) => process.pid % 2 === 0
