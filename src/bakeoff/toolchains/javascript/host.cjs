// How a worker talks to the host, and what it takes from its process before a candidate comes: the same for every
// kind of worker. What is used later is taken hold of here, before any line of a candidate's has run.
'use strict';
const net = require('node:net');
const { Console } = require('node:console');
const { writeSync } = require('node:fs');
const { Writable } = require('node:stream');

const bufferFrom = Buffer.from.bind(Buffer);
const subarray = Function.prototype.call.bind(Uint8Array.prototype.subarray);
const wellFormed = Function.prototype.call.bind(String.prototype.toWellFormed);
const cut = Function.prototype.call.bind(String.prototype.slice);
const sleep = Atomics.wait.bind(Atomics, new Int32Array(new SharedArrayBuffer(4)), 0, 0);
const reallyExit = process.reallyExit.bind(process);

const MOST_MESSAGE = 4000;
const ENTRANCES = [
  ...['binding', '_linkedBinding', 'dlopen', 'getBuiltinModule', 'mainModule', '_getActiveHandles', 'reallyExit'],
  ...['_getActiveRequests', '_debugProcess', '_debugEnd', '_kill', 'openStdin', 'report', 'stdin', 'getActiveResourcesInfo'],
  ...['_rawDebug', 'setUncaughtExceptionCaptureCallback', 'abort', 'chdir', 'umask', 'execve', 'kill', 'loadEnvFile'],
];

// Ways past the modules that a candidate may import, and out of its process.
function lockDoors() {
  const sink = new Writable({ write: (_chunk, _encoding, done) => done() });
  globalThis.console = new Console({ stdout: sink, stderr: sink });
  process.exit = (code = process.exitCode || 0) => {
    throw new Error(`process.exit unexpectedly called with "${code}"`);
  };
  for (const name of ENTRANCES) {
    Object.defineProperty(process, name, { value: undefined, configurable: false, writable: true });
  }
  for (const name of ['stdout', 'stderr']) {
    Object.defineProperty(process, name, { value: sink, configurable: false, writable: true });
  }
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

function send(descriptor, text) {
  let left = bufferFrom(`${text}\n`, 'utf8');
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

module.exports = { connect, lockDoors, messageOf, oneLine, reallyExit, send };
