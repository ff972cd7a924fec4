// The modules of Node that a candidate may have while it is tested: none that leads to files, processes or the runner.
'use strict';
exports.SAFE_MODULES = new Set([
  ...['assert', 'assert/strict', 'buffer', 'crypto', 'events', 'path', 'path/posix', 'perf_hooks', 'punycode', 'querystring'],
  ...['stream', 'string_decoder', 'timers', 'timers/promises', 'url', 'util', 'util/types'],
]);
