// What both compilers have: the scripts that they keep, and their connection to the host.
'use strict';
const net = require('node:net');
const readline = require('node:readline');

const MOST_KEPT = 500;

// The two runs of a grading differ in their test alone; what else they have is compiled once.
function keeping(compile) {
  const kept = new Map();
  return (name, source) => {
    const key = `${name}\n${source}`;
    if (!kept.has(key)) {
      kept.set(key, compile(name, source));
      if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
    }
    return kept.get(key);
  };
}

// Answers one question after the other. `rehearse` takes the usual ways once, so that no candidate waits for them.
function serve(answer, rehearse) {
  const socket = net.connect(process.argv.at(-1), async () => {
    await rehearse();
    socket.write('{"ready":true}\n');
  });
  socket.on('close', () => process.exit(0));
  readline.createInterface({ input: socket }).on('line', async (line) => {
    socket.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`);
  });
}

module.exports = { keeping, serve };
