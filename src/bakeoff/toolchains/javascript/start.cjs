// Starts the worker of a framework from its bundle and from what V8 kept of it.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');

const [framework, address] = process.argv.slice(2);
const bundle = path.join(__dirname, 'warm', `${framework}.cjs`);
const cache = path.join(__dirname, 'warm', `${framework}-${process.version}-${process.arch}.cache`);
const making = address === '--make-cache';
const script = new vm.Script(`(function (require, module, exports, __filename, __dirname) {${fs.readFileSync(bundle, 'latin1')}\n})`, {
  filename: 'worker.cjs',
  cachedData: !making && fs.existsSync(cache) ? fs.readFileSync(cache) : undefined,
});
const module_ = { exports: {} };
script.runInThisContext().call(undefined, require, module_, module_.exports, bundle, path.dirname(bundle));
module_.exports.start(making ? null : address).then(() => {
  // Only now has V8 seen which functions are used on the way, so that they too are in the cache.
  if (making) {
    fs.writeFileSync(cache, script.createCachedData());
    process.exit(0);
  }
});
