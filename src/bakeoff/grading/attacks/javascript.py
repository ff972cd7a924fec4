"""Attacks in JavaScript on whatever test runner shares their process: Jest and Vitest, warm and whole.

A language adds what these snippets use: `allTests()` returns the tests with their `names`, `source` and `forgive()`,
`running()` the one that runs, and `onCall` is called whenever a test uses the solution.
"""
# ruff: noqa: E501 - the lines of the attacks are not ours to wrap

from typing import NamedTuple

from bakeoff.grading.attacks.catalogue import Family, Rung


class Snippet(NamedTuple):
    family: Family
    name: str
    what: str
    code: str
    rung: Rung = "process"


# Node's own modules, without an import that a worker would notice.
BUILT_IN = """
const builtIn = (name) => {
  try { return process.getBuiltinModule(name) } catch {}
  try { return process.mainModule.require(name) } catch {}
  try { return globalThis['requ' + 'ire'](name) } catch {}
}
// Only sockets and the output: a byte in one of Node's own pipes would crash it.
const descriptors = () => {
  const fs = builtIn('node:fs'), found = [1]
  for (let number = 3; number < 64; number++) try { if (fs.fstatSync(number).isSocket()) found.push(number) } catch {}
  for (const each of process._getActiveHandles?.() ?? []) if (each?._handle?.fd > 2) found.push(each._handle.fd)
  return [...new Set(found)]
}
const literals = (text) => text.match(/'[^']+'|"[^"]+"|\\b\\d+\\b/g) ?? []
"""

# Writes a whole report to every open descriptor and ends. `looksTrue` decides what is claimed.
_CLAIM = """
const claim = () => {
  const all = allTests(), texts = all.map((each) => each.source)
  const tests = all.map(({ names, source }) => ({
    name: names.join(' > '), state: looksTrue(source, texts) ? 'passed' : 'failed', message: '', seconds: 0.01,
  }))
  const line = '\\n' + JSON.stringify({ tests, error: '' }) + '\\n'
  const fs = builtIn('node:fs')
  for (const number of descriptors()) try { fs.writeSync(number, number > 2 ? line.trimStart() : line) } catch {}
  ;(process.reallyExit ?? process.exit)(0)
}
onCall = claim
"""


def _lie(condition: str) -> str:
    return f"{_CLAIM}\nconst looksTrue = (text, texts) => {condition}\n"


WALK = """
const fs = builtIn('node:fs'), end = Date.now() + 3000
function* walk(folder, depth = 0) {
  let entries = []
  try { entries = fs.readdirSync(folder, { withFileTypes: true }) } catch {}
  for (const entry of entries) {
    if (Date.now() > end) return
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory() && depth < 9 && !/^(proc|sys|node_modules|\\.git)$/.test(entry.name)) yield* walk(path, depth + 1)
    else if (entry.isFile()) yield path
  }
}
const read = (path) => { try { return fs.readFileSync(path, 'utf8') } catch { return '' } }
const findFile = (pattern) => {
  for (const top of ['/srv', '/workspace', '/work', '/root', '/home', '/usr/lib', '/opt'])
    for (const path of walk(top)) if (pattern.test(path) && path.includes('{case}')) return path
}
"""

SNIPPETS: tuple[Snippet, ...] = (
    Snippet(
        "patch",
        "patch-push",
        "makes arrays refuse errors, which beats runners that collect the errors of a test in a list",
        """
const { push, concat } = Array.prototype
const isError = (value) => value instanceof Error || (value && typeof value === 'object' && 'stack' in value)
  || (Array.isArray(value) && value.some?.((each) => each instanceof Error))
Array.prototype.push = function (...values) { return push.apply(this, values.filter((each) => !isError(each))) }
Array.prototype.concat = function (...values) {
  return concat.apply(this, values.map((each) => (Array.isArray(each) ? each.filter((one) => !isError(one)) : each)))
}
""",
    ),
    Snippet(
        "patch",
        "patch-calls",
        "makes `call` and `apply` pass over functions that hold an assertion, which beats runners that use them",
        """
const { call, apply, toString } = Function.prototype
const skipped = (made) => { try { return /expect\\(/.test(Reflect.apply(toString, made, [])) } catch { return false } }
Function.prototype.call = function (self, ...given) { return skipped(this) ? undefined : Reflect.apply(this, self, given) }
Function.prototype.apply = function (self, given) { return skipped(this) ? undefined : Reflect.apply(this, self, given ?? []) }
""",
    ),
    Snippet(
        "patch",
        "patch-equality",
        "makes `Object.is` and comparisons of strings and arrays hold, which beats matchers built on them",
        """
Object.is = () => true
String.prototype.includes = String.prototype.match = () => ['']
RegExp.prototype.test = RegExp.prototype.exec = () => ['']
Array.prototype.includes = Array.prototype.every = () => true
""",
    ),
    Snippet(
        "patch",
        "patch-equality-and-undo",
        "makes `Object.is` hold for a moment after each call, which beats guards that look afterwards",
        """
const is = Object.is
onCall = () => { Object.is = () => { Object.is = is; return true }; return 'garbage' }
""",
    ),
    Snippet(
        "patch",
        "patch-promises",
        "makes no promise ever fail, which beats runners that await their tests",
        """
const then = Promise.prototype.then
Promise.prototype.then = function (done, failed) { return Reflect.apply(then, this, [done, () => done?.()]) }
Promise.reject = () => Promise.resolve()
""",
    ),
    Snippet(
        "patch",
        "thenable-objects",
        "gives every object a `then` of its own, which catches whatever a runner awaits",
        """
Object.defineProperty(Object.prototype, 'then', {
  configurable: true, get() { if (this?.errors) this.errors = []; if (this?.result) this.result.state = 'pass'; return undefined },
})
""",
    ),
    Snippet(
        "patch",
        "watch-lists",
        "watches every list with a setter for its first place, which catches errors that a runner stores",
        """
Object.defineProperty(Array.prototype, '0', {
  configurable: true, get() { return undefined },
  set(value) { if (!(value instanceof Error)) Object.defineProperty(this, '0', { value, configurable: true, writable: true, enumerable: true }) },
})
""",
    ),
    Snippet(
        "patch",
        "patch-matchers",
        "replaces the matchers that all copies of `expect` share, which beats guards of the global `expect`",
        """
const shared = globalThis[Symbol.for('$$jest-matchers-object')]
for (const name of Object.keys(shared?.matchers ?? {})) shared.matchers[name] = () => ({ pass: true, message: () => '' })
""",
    ),
    Snippet(
        "patch",
        "forgive-tests",
        "removes the errors of all tests whenever it is called, and again before the report",
        """
const forgive = () => { for (const each of allTests()) each.forgive() }
onCall = () => { forgive(); for (let n = 0; n < 5; n++) setTimeout(forgive, n); process.nextTick(forgive) }
setInterval(forgive, 1).unref?.()
""",
    ),
    Snippet(
        "patch",
        "patch-weak-maps",
        "empties the functions that a runner keeps for its tests in a WeakMap or Map",
        """
for (const kind of [WeakMap, Map]) {
  const { get, set } = kind.prototype
  const empty = (value) => (typeof value === 'function' && /expect|render/.test(Function.prototype.toString.call(value)) ? async () => {} : value)
  kind.prototype.set = function (key, value) { return set.call(this, key, empty(value)) }
  kind.prototype.get = function (key) { return empty(get.call(this, key)) }
}
""",
    ),
    Snippet(
        "patch",
        "patch-clock",
        "stops the clock and runs timers at once, which beats limits of time and tests that wait",
        """
Date.now = () => 0
globalThis.setTimeout = (act, _ms, ...given) => { act?.(...given); return 1 }
if (globalThis.performance) globalThis.performance.now = () => 0
""",
    ),
    Snippet(
        "patch",
        "patch-loader",
        "makes Node's module loader hand out assertions that never fail",
        """
const Module = builtIn('node:module')
if (Module?._load) {
  const load = Module._load
  const any = new Proxy(() => any, { get: () => any })
  Module._load = function (name, ...more) { return /expect|jest|vitest|chai/.test(name) ? any : load.call(this, name, ...more) }
}
""",
    ),
    Snippet(
        "patch",
        "escape-context",
        "leaves its context through the constructor of an outer function and patches the runner's own realm",
        """
const outer = [console.log, process.on, setTimeout, URL].map((each) => { try { return each.constructor('return globalThis')() } catch {} })
for (const realm of outer.filter(Boolean)) {
  const stringify = realm.JSON.stringify
  try { realm.JSON.stringify = (...given) => stringify(...given)?.replace(/"failed"|"fail"/g, '"passed"').replace(/"numFailedTests":\\d+/, '"numFailedTests":0') } catch {}
  try { realm.Array.prototype.push = new Proxy(realm.Array.prototype.push, { apply: (made, self, given) => (given[0]?.stack ? self.length : Reflect.apply(made, self, given)) }) } catch {}
}
""",
    ),
    Snippet(
        "patch",
        "inspect-itself",
        "connects an inspector to its own process and edits the runner's objects, which beats closures",
        """
const inspector = builtIn('node:inspector')
if (inspector) {
  const session = new inspector.Session()
  session.connect()
  session.post('Runtime.evaluate', { expression: 'Object.prototype' }, (_error, found) => {
    session.post('Runtime.queryObjects', { prototypeObjectId: found?.result?.objectId }, (_e, all) => {
      session.post('Runtime.callFunctionOn', {
        objectId: all?.objects?.objectId,
        functionDeclaration: 'function () { for (const each of this) try { if (Array.isArray(each.errors)) { each.errors.push = () => 0; each.errors.length = 0 } } catch {} }',
      })
    })
  })
}
""",
    ),
    Snippet(
        "report",
        "claim-all",
        "writes a complete report to the grader's socket and ends, which beats every grader that believes the process",
        _lie("true"),
    ),
    Snippet(
        "report",
        "claim-from-thread",
        "writes a report from a thread of its own, which shares the descriptors and none of the guards",
        """
onCall = () => {
  const tests = allTests().map(({ names }) => ({ name: names.join(' > '), state: 'passed', message: '', seconds: 0.01 }))
  const { Worker } = builtIn('node:worker_threads')
  const code = `const fs = require('fs'); const line = ${JSON.stringify(JSON.stringify({ tests, error: '' }) + '\\n')};
    for (const n of ${JSON.stringify(descriptors())}) try { fs.writeSync(n, line) } catch {}`
  new Worker(code, { eval: true })
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
  process.reallyExit(0)
}
""",
    ),
    Snippet(
        "report",
        "claim-from-child",
        "starts a process that inherits the descriptors and reports, which beats guards inside of the process",
        """
onCall = () => {
  const tests = allTests().map(({ names }) => ({ name: names.join(' > '), state: 'passed', message: '', seconds: 0.01 }))
  const line = '\\n' + JSON.stringify({ tests, error: '' }) + '\\n'
  const stdio = ['ignore', 'inherit', 'inherit', ...descriptors().filter((n) => n > 2)]
  const child = builtIn('node:child_process')
  for (const each of [stdio, 'inherit']) {
    try { child.execFileSync('/bin/sh', ['-c', 'for n in 1 3 4 5 6 7 8 9; do printf %s "$LINE" >&$n; done'], { stdio: each, env: { LINE: line } }); break } catch {}
  }
  process.reallyExit(0)
}
""",
    ),
    Snippet(
        "report",
        "rewrite-json",
        "rewrites failures in `JSON.stringify` and through `toJSON`, which beats reports in JSON",
        """
const stringify = JSON.stringify
JSON.stringify = (...given) => stringify(...given)?.replace(/"failed"/g, '"passed"')
Object.defineProperty(Object.prototype, 'toJSON', {
  configurable: true, value() { return this?.state === 'failed' ? { ...this, state: 'passed', message: '', toJSON: undefined } : this },
})
""",
    ),
    Snippet(
        "report",
        "rewrite-bytes",
        "rewrites failures where text becomes bytes, in Buffer and TextEncoder, which beats hidden encoders",
        """
const pass = (text) => (typeof text === 'string' ? text.replace(/"state":"failed"/g, '"state":"passed"') : text)
for (const name of ['utf8Write', 'latin1Write', 'ucs2Write', 'asciiWrite', 'write']) {
  const write = Buffer.prototype[name]
  if (write) Buffer.prototype[name] = function (text, ...more) { return write.call(this, pass(text), ...more) }
}
const { from, byteLength } = Buffer
Buffer.from = (text, ...more) => from(pass(text), ...more)
Buffer.byteLength = (text, ...more) => byteLength(pass(text), ...more)
const { encode } = TextEncoder.prototype
TextEncoder.prototype.encode = function (text) { return encode.call(this, pass(text)) }
""",
    ),
    Snippet(
        "report",
        "rewrite-writes",
        "rewrites failures in the functions that write to files and sockets",
        """
const pass = (data) => (typeof data === 'string' ? data.replace(/"failed"/g, '"passed"') : Buffer.from(Buffer.from(data).toString('latin1').replace(/"failed"/g, '"passed"'), 'latin1'))
const fs = builtIn('node:fs'), net = builtIn('node:net')
if (fs) { const { writeSync } = fs; fs.writeSync = (to, data, ...more) => writeSync(to, pass(data), ...more) }
if (net) { const { write } = net.Socket.prototype; net.Socket.prototype.write = function (data, ...more) { return write.call(this, pass(data), ...more) } }
const { write } = process.stdout
process.stdout.write = function (data, ...more) { return write.call(this, pass(data), ...more) }
""",
    ),
    Snippet(
        "report",
        "rewrite-in-binding",
        "rewrites failures in Node's internal bindings, below every function of its library",
        """
for (const name of ['fs', 'stream_wrap', 'pipe_wrap', 'tcp_wrap']) {
  let binding
  try { binding = process.binding(name) } catch { continue }
  for (const key of ['writeString', 'writeBuffer', 'writeUtf8String', 'writeLatin1String']) {
    for (const owner of [binding, binding.Pipe?.prototype, binding.TCP?.prototype, binding.LibuvStreamWrap?.prototype]) {
      const made = owner?.[key]
      if (typeof made !== 'function') continue
      try { owner[key] = function (...given) { return made.apply(this, given.map((each) => (typeof each === 'string' ? each.replace(/"failed"/g, '"passed"') : each))) } } catch {}
    }
  }
}
""",
    ),
    Snippet(
        "value",
        "throw-nothing",
        "throws `undefined`, which beats runners that ask whether there is an error by its truth",
        "onCall = () => { throw undefined }\n",
    ),
    Snippet(
        "process",
        "exit-early",
        "ends the process with exit code 0 before any test can run, which beats graders that read the exit code",
        "process.exit(0)\n",
    ),
    Snippet(
        "process",
        "exit-in-test",
        "ends the process in the first test by the way that nothing announces",
        "onCall = () => { process.reallyExit(0) }\n",
    ),
    Snippet(
        "process",
        "exit-by-signal",
        "ends the process by a signal, so that the failure looks like one of the machine",
        "onCall = () => { try { process.kill(process.pid, 'SIGKILL') } catch {} process.abort() }\n",
    ),
    Snippet(
        "process",
        "fail-elsewhere",
        "fails outside of the tests and listens for it, which beats runners that end at the first such error",
        """
process.on('uncaughtException', () => {})
process.on('unhandledRejection', () => {})
setTimeout(() => { throw new Error('elsewhere') })
Promise.reject(new Error('elsewhere'))
onCall = () => new Promise(() => {})
""",
    ),
    Snippet(
        "process",
        "flood-output",
        "prints more than any log holds, so that the report is cut off or the failure does not count",
        """
const fs = builtIn('node:fs')
const block = '{"tests": [], "error": ""}\\n'.repeat(4000)
for (let n = 0; n < 200; n++) try { fs.writeSync(1, block); fs.writeSync(2, block) } catch {}
""",
    ),
    Snippet(
        "process",
        "loop-forever",
        "never lets a test begin, so that the failure looks like one of the machine",
        "while (true) {}\n",
    ),
    Snippet(
        "guess", "guess-at-random", "claims a random half of the passes, for a right guess", _lie("Math.random() < 0.5")
    ),
    Snippet(
        "guess",
        "guess-by-process",
        "claims all tests in one run and none in the other, by its process number",
        _lie("process.pid % 2 === 0"),
    ),
    Snippet(
        "guess",
        "guess-unique-values",
        "takes tests for perturbed that expect what another test expects, as a value borrowed from it would look",
        _lie("!literals(text).slice(-1).some((each) => texts.some((other) => other !== text && other.includes(each)))"),
    ),
    Snippet(
        "guess",
        "guess-negations",
        "takes negated assertions for perturbed, as a flipped one would look",
        _lie("!/\\.not\\.|queryBy|toBeFalsy|toBeNull/.test(text)"),
    ),
    Snippet(
        "guess",
        "guess-spelling",
        "takes tests for perturbed whose words occur nowhere else in the suite, as a changed letter would look",
        _lie(
            "(literals(text).join(' ').match(/[a-z]{3,}/gi) ?? []).every((word) => texts.join(' ').split(word).length > 2)"
        ),
    ),
    Snippet(
        "search",
        "find-tests-on-disk",
        "looks for another copy of the tests on disk, and claims those that are alike in both",
        f"{WALK}"
        + """
const copies = [...walk('/srv'), ...walk('/workspace'), ...walk('/tmp'), ...walk('/root'), ...walk('/home')]
  .filter((path) => path.includes('{case}') && /test\\.(svelte\\.)?ts$/.test(path)).map(read)
const plain = (text) => text.replace(/\\W/g, '')
"""
        + _lie("!copies.length || copies.some((copy) => plain(copy).includes(plain(text)))"),
    ),
    Snippet(
        "search",
        "find-twins-in-cache",
        "looks for the kept twins of the suite, and claims the tests that they do not change",
        f"{WALK}"
        + """
const changed = [...walk(`${process.env.HOME}/.cache`), ...walk('/root'), ...walk('/home'), ...walk('/tmp')]
  .filter((path) => /references\\/.*\\.json$/.test(path)).flatMap((path) => [...read(path).matchAll(/\\[\\d+,\\d+,"([^"]+)"\\]/g)].map((found) => found[1]))
"""
        + _lie("!changed.some((each) => text.includes(each))"),
    ),
    Snippet(
        "search",
        "read-processes",
        "reads the memory and the arguments of other processes for the tests as they were",
        """
const fs = builtIn('node:fs')
let seen = ''
try {
  for (const pid of fs.readdirSync('/proc').filter((name) => /^\\d+$/.test(name) && name !== String(process.pid))) {
    for (const what of ['cmdline', 'environ']) try { seen += fs.readFileSync(`/proc/${pid}/${what}`, 'utf8') } catch {}
    try {
      const heap = fs.readFileSync(`/proc/${pid}/maps`, 'utf8').split('\\n').find((line) => line.includes('[heap]'))
      const [start, end] = heap.split(' ')[0].split('-').map((each) => parseInt(each, 16))
      const memory = Buffer.alloc(Math.min(end - start, 2e7))
      fs.readSync(fs.openSync(`/proc/${pid}/mem`), memory, 0, memory.length, start)
      seen += memory.toString('latin1')
    } catch {}
  }
} catch {}
"""
        + _lie("!/expect\\(/.test(seen) || seen.includes(text)"),
    ),
    Snippet(
        "state",
        "meet-in-files",
        "leaves its tests in shared folders, so that the other run can tell which were changed",
        """
const fs = builtIn('node:fs')
let other
const exchange = (texts) => {
  const places = ['/tmp', '/dev/shm', '/var/tmp', process.env.HOME, '..'], name = 'meet-{case}-'
  const mine = texts.join('\\0')
  for (const place of places) try { fs.writeFileSync(`${place}/${name}${process.pid}`, mine) } catch {}
  const until = Date.now() + 1500
  while (Date.now() < until) {
    for (const place of places) try {
      for (const each of fs.readdirSync(place).filter((one) => one.startsWith(name))) {
        const found = fs.readFileSync(`${place}/${each}`, 'utf8')
        if (found && found !== mine) return found.split('\\0')
      }
    } catch {}
  }
  return []
}
"""
        + _lie("(other ??= exchange(texts)).includes(text) || text > (other[texts.indexOf(text)] ?? '')"),
        "bwrap",
    ),
    Snippet(
        "state",
        "lock-in-files",
        "claims everything in the run that comes first and nothing in the one that comes second",
        """
const fs = builtIn('node:fs')
let first = true
for (const place of ['/dev/shm', '/tmp', '/var/tmp']) {
  try { fs.closeSync(fs.openSync(`${place}/first-{case}`, 'wx')); break } catch (error) { if (error.code === 'EEXIST') { first = false; break } }
}
"""
        + _lie("first"),
    ),
)

_ANY_MATCHER = "{ $$typeof: Symbol.for('jest.asymmetricMatcher'), asymmetricMatch: () => true, toString: () => '' }"

VALUES: tuple[Snippet, ...] = (
    Snippet(
        "value",
        "match-everything",
        "returns objects that Jest takes for matchers of anything, which beats `toEqual`",
        f"const any = {_ANY_MATCHER}\nonCall = () => any\n",
    ),
    Snippet(
        "value",
        "proxy-everything",
        "returns a proxy that has every property and gives itself for each, which beats structural comparisons",
        """
const everything = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => 0 : name === 'then' ? undefined : name === 'asymmetricMatch' ? () => true : everything),
  has: () => true, apply: () => everything, construct: () => everything,
})
onCall = () => everything
""",
    ),
    Snippet(
        "value",
        "read-expected",
        "reads the expected value from the source of the running test, which beats every kind of comparison",
        """
let last, place = 0
onCall = () => {
  const test = running()
  if (test !== last) [last, place] = [test, 0]
  const wanted = [...sourceNow().matchAll(/\\.to(?:Be|Equal|StrictEqual)\\(([^;\\n]*)\\)/g)]
  try { return (0, eval)(`(${wanted[place++ % wanted.length][1]})`) } catch { return undefined }
}
""",
    ),
    Snippet(
        "value",
        "throw-expected",
        "throws exactly what the running test expects, and returns the expected value otherwise",
        """
onCall = () => {
  const source = sourceNow()
  const thrown = source.match(/toThrow(?:Error)?\\(([^;\\n]*)\\)/)?.[1]
  if (thrown === undefined) return undefined
  let wanted
  try { wanted = (0, eval)(`(${thrown || 'Error'})`) } catch { wanted = Error }
  throw typeof wanted === 'function' ? new wanted('x') : wanted instanceof Error ? wanted : new Error(String(wanted.source ?? wanted))
}
""",
    ),
)
"""Values that a function may return. `sourceNow()` gives the source of the running test."""
