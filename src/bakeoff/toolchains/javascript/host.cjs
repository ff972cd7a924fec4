// What every kind of worker has: its connection to the host, and how it tells a result. What is used after the candidate's
// first line is taken hold of here, before it: solutions and tests may change what is built in.
'use strict';
const net = require('node:net');
const { Console } = require('node:console');
const { writeSync } = require('node:fs');
const { Writable } = require('node:stream');

const { parse, stringify } = JSON;
const { setImmediate: soon, setTimeout: later } = globalThis;
const encoder = new TextEncoder();
const encode = encoder.encode.bind(encoder);
const subarray = Function.prototype.call.bind(Uint8Array.prototype.subarray);
const wellFormed = Function.prototype.call.bind(String.prototype.toWellFormed);
const cut = Function.prototype.call.bind(String.prototype.slice);
const sleep = Atomics.wait.bind(Atomics, new Int32Array(new SharedArrayBuffer(4)), 0, 0);
const reallyExit = process.reallyExit.bind(process);

const MOST_MESSAGE = 4000;
const MOST_MESSAGES = 20;

// Nobody reads what is printed here, and a signal is for the host to send.
function detach() {
  const sink = new Writable({ write: (_chunk, _encoding, done) => done() });
  const made = new Console({ stdout: sink, stderr: sink });
  for (const name of Object.keys(console)) made[name] ??= () => {}; // such as `timeStamp`, which the inspector adds
  globalThis.console = made;
  for (const name of ['stdout', 'stderr']) Object.defineProperty(process, name, { value: sink, configurable: true, writable: true });
  process.exit = (code = process.exitCode || 0) => {
    throw new Error(`process.exit unexpectedly called with "${code}"`);
  };
  process.kill = process._kill = process._debugProcess = () => {
    throw new Error('a test sends no signals here');
  };
}

function messageOf(error) {
  let text;
  try {
    const { name, message } = typeof error === 'object' && error !== null ? error : {};
    text = typeof message === 'string' ? message : `${error}`;
    if (typeof name === 'string' && name !== 'Error' && name !== 'AssertionError') text = `${name}: ${text}`;
  } catch {
    text = 'an error that cannot be shown';
  }
  return wellFormed(text.length > MOST_MESSAGE ? `${cut(text, 0, MOST_MESSAGE)}…` : text);
}

const messagesOf = (errors) => (errors ?? []).slice(0, MOST_MESSAGES).map(messageOf).join('\n');

function outcome(names, state, errors, milliseconds) {
  return { name: wellFormed(names.join(' > ')), state, message: messagesOf(errors), seconds: (milliseconds ?? 0) / 1000 };
}

function send(descriptor, value) {
  let left = encode(`${stringify(value)}\n`);
  while (left.length > 0) {
    try {
      left = subarray(left, writeSync(descriptor, left));
    } catch (error) {
      if (error.code !== 'EAGAIN') return;
      sleep(1);
    }
  }
}

function connect(address) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(address, () => resolve(socket));
    socket.on('error', reject);
  });
}

function oneLine(socket) {
  return new Promise((resolve) => {
    const chunks = [];
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      if (chunk[chunk.length - 1] === 10) resolve(Buffer.concat(chunks).toString('utf8'));
    });
    socket.on('end', () => reallyExit(0)); // the host has no job for us
  });
}

// Takes one job, answers with what `perform` returns, and ends. `giveUp` leaves the job to a whole test runner.
async function serve(address, perform) {
  const socket = await connect(address);
  const descriptor = socket._handle.fd;
  const asked = oneLine(socket);
  const answer = (value) => send(descriptor, value);
  const giveUp = (why) => {
    answer({ whole: why });
    reallyExit(0);
  };
  detach();
  answer({ ready: true });
  const job = parse(await asked);
  socket.pause();
  answer(await perform(job, giveUp));
  reallyExit(0);
}

// What is left to do when the last test has ended, such as a rejection that nobody handled. Timers of equal length end in
// the order of their start, so this one, of the shortest length there is, ends after each `setTimeout` of 0 before it.
const settle = () => new Promise((done) => later(() => soon(() => soon(done)), 1));

module.exports = { messageOf, messagesOf, outcome, serve, settle };
