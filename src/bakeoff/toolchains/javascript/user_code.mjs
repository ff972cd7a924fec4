// Run JavaScript of the user: one call per line of standard input, one answer per line of standard output.
import { writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

process.stdout.write = process.stderr.write.bind(process.stderr) // what the code prints is no answer

const require = createRequire(join(process.cwd(), 'config.js'))
const AsyncFunction = (async () => {}).constructor

const functionOf = async ({ file, name, code, names }) => {
  if (file) {
    const loaded = await import(pathToFileURL(file).href)
    const usual = loaded.default ?? loaded
    const found = name ? (usual[name] ?? loaded[name]) : (usual.default ?? usual)
    if (typeof found !== 'function') throw new Error(`${file} exports no function${name ? ` ${name}` : ''}`)
    return found
  }
  const made = (body) => new AsyncFunction(...names, 'require', body)
  const bound = (made) => (...args) => made(...args, require)
  if (code.trim().includes('\n')) return bound(made(code))
  if (/^\s*(const|let|var)\s/.test(code)) return bound(made(code.replace(/;\s*([^;]+);?\s*$/, '; return $1')))
  try {
    return bound(made(`return ${code}`))
  } catch {
    return bound(made(code)) // a statement, such as `return …`
  }
}

// A class is a provider: an object of it answers by its method.
const called = async (found, { args, method, options }) => {
  if (!method) {
    const value = await found(...args)
    return typeof value === 'function' ? value(...args) : value
  }
  const isClass = /^class\b/.test(Function.prototype.toString.call(found))
  return isClass ? new found(options)[method](...args) : found(...args)
}

const answer = async (call) => {
  let found
  try {
    found = await functionOf(call)
  } catch (error) {
    return { broken: String(error) }
  }
  try {
    return { value: await called(found, call) }
  } catch (error) {
    return { error: String(error) }
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  let text
  try {
    text = JSON.stringify(await answer(JSON.parse(line)))
  } catch (error) {
    text = JSON.stringify({ error: String(error) })
  }
  const bytes = Buffer.from(`${text}\n`)
  for (let done = 0; done < bytes.length; ) {
    try {
      done += writeSync(1, bytes, done)
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}
