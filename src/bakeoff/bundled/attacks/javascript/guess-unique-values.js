// include: claim

const looksTrue = (text, texts) => !literals(text).slice(-1).some((each) => texts.some((other) => other !== text && other.includes(each)))
