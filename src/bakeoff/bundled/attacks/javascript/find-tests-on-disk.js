// include: walk

const copies = [...walk('/srv'), ...walk('/workspace'), ...walk('/tmp'), ...walk('/root'), ...walk('/home')]
  .filter((path) => path.includes('{case}') && /test\.(svelte\.)?ts$/.test(path)).map(read)
const plain = (text) => text.replace(/\W/g, '')

// include: claim

const looksTrue = (text, texts) => !copies.length || copies.some((copy) => plain(copy).includes(plain(text)))
