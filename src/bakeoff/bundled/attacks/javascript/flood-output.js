const fs = builtIn('node:fs')
const block = '{"tests": [], "error": ""}\n'.repeat(4000)
for (let n = 0; n < 200; n++) try { fs.writeSync(1, block); fs.writeSync(2, block) } catch {}
