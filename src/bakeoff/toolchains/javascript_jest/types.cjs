// Checks the types of an exercise as `tsc --noEmit -p .` does. It reads files and runs none, so nothing that they say can
// change what it finds. One process serves every answer, and keeps the declarations of libraries parsed.
'use strict';
const net = require('node:net');
const path = require('node:path');
const readline = require('node:readline');
const ts = require('typescript');

const ROOT = path.join(__dirname, 'exercise'); // there is no such folder; packages are found in the one around it
const LIBRARIES = [path.dirname(require.resolve('typescript')), path.join(__dirname, 'node_modules')];
const MOST = 20;
const USUAL = require('./tsconfig.json').compilerOptions; // agents get the same file
const OURS = { noEmit: true, skipLibCheck: true, incremental: false, composite: false, tsBuildInfoFile: undefined };

const parsed = new Map(); // declarations of libraries, by path and language version
const isLibrary = (name) => LIBRARIES.some((folder) => name.startsWith(folder + path.sep));

class Host {
  constructor(files) {
    this.files = new Map(Object.entries(files).map(([name, text]) => [path.join(ROOT, name), text]));
    this.folders = new Set([...this.files.keys()].flatMap((name) => {
      const around = [];
      for (let folder = path.dirname(name); folder.startsWith(ROOT); folder = path.dirname(folder)) around.push(folder);
      return around;
    }));
    this.useCaseSensitiveFileNames = () => true;
    this.getCurrentDirectory = () => ROOT;
    this.getCanonicalFileName = (name) => name;
    this.getNewLine = () => '\n';
    this.getDefaultLibFileName = ts.getDefaultLibFilePath;
    this.getDefaultLibLocation = () => LIBRARIES[0];
    this.writeFile = () => {};
    this.realpath = (name) => name;
    this.fileExists = (name) => this.files.has(name) || (isLibrary(name) && ts.sys.fileExists(name));
    this.readFile = (name) => this.files.get(name) ?? (isLibrary(name) ? ts.sys.readFile(name) : undefined);
    this.directoryExists = (name) => this.folders.has(name) || name === LIBRARIES[1] || (isLibrary(name) && ts.sys.directoryExists(name));
    this.getDirectories = (name) => (name === LIBRARIES[1] || isLibrary(name) ? ts.sys.getDirectories(name) : []);
  }

  getSourceFile(name, options) {
    const text = this.files.get(name);
    if (text !== undefined) return ts.createSourceFile(name, text, options);
    if (!isLibrary(name)) return undefined;
    const key = `${JSON.stringify(options)}\n${name}`;
    if (!parsed.has(key)) parsed.set(key, ts.createSourceFile(name, ts.sys.readFile(name) ?? '', options));
    return parsed.get(key);
  }
}

function settingsOf(host, files) {
  const given = ts.parseConfigFileTextToJson('tsconfig.json', files['tsconfig.json'] ?? JSON.stringify({ compilerOptions: USUAL }));
  const reader = {
    useCaseSensitiveFileNames: true, fileExists: host.fileExists, readFile: host.readFile,
    readDirectory: (folder, extensions, exclude, include, depth) => ts.matchFiles(
      folder, extensions, exclude, include, true, ROOT, depth, (name) => entriesOf(host, name), (name) => name),
  };
  const found = ts.parseJsonConfigFileContent(given.config ?? {}, reader, ROOT, OURS, path.join(ROOT, 'tsconfig.json'));
  return { ...found, errors: [...(given.error ? [given.error] : []), ...found.errors] };
}

function entriesOf(host, folder) {
  const inside = (name) => path.dirname(name) === folder;
  const names = (all) => [...all].filter(inside).map((name) => path.basename(name));
  return { files: names(host.files.keys()), directories: names(host.folders) };
}

function check(files) {
  const host = new Host(files);
  const { options, fileNames, errors } = settingsOf(host, files);
  // Type tests have a runner of their own.
  const program = ts.createProgram(fileNames.filter((name) => !/\.tst\.tsx?$/.test(name)), { ...options, ...OURS }, host);
  const found = [...errors, ...ts.getPreEmitDiagnostics(program)].filter((each) => each.category === ts.DiagnosticCategory.Error);
  return { errors: found.slice(0, MOST).map(describe), count: found.length };
}

function describe({ file, start, code, messageText }) {
  const text = ts.flattenDiagnosticMessageText(messageText, '\n');
  if (!file) return `error TS${code}: ${text}`;
  const { line, character } = file.getLineAndCharacterOfPosition(start ?? 0);
  return `${path.relative(ROOT, file.fileName)}(${line + 1},${character + 1}): error TS${code}: ${text}`;
}

function start(address) {
  const socket = net.connect(address, () => {
    check({ 'a.test.ts': "import { expect, it } from '@jest/globals'\nit('a', () => { expect([1].at(0)).toBe(1) })\n" });
    socket.write('{"ready":true}\n');
  });
  socket.on('close', () => process.exit(0));
  readline.createInterface({ input: socket }).on('line', (line) => socket.write(`${JSON.stringify(check(JSON.parse(line)))}\n`));
}

if (require.main === module) start(process.argv[2]);
module.exports = { check };
