// What a whole Vitest tells of its tests, in the form that the host reads.
import fs from 'node:fs';

const MOST_MESSAGE = 4000;

function message(error) {
  const text = (error.name && !['Error', 'AssertionError'].includes(error.name) ? `${error.name}: ` : '') + error.message;
  return (text.length > MOST_MESSAGE ? `${text.slice(0, MOST_MESSAGE)}…` : text).toWellFormed();
}

const all = (errors) => (errors ?? []).map(message).join('\n');

const report = { tests: [], error: '' };

export const reporter = {
  onTestRunEnd(modules, unhandled) {
    const errors = unhandled.map((error) => `${error.type ?? 'Unhandled Error'}: ${message(error)}`);
    for (const module of modules) {
      errors.unshift(...module.errors().map(message));
      for (const suite of module.children.allSuites()) errors.push(...suite.errors().map(message));
      for (const test of module.children.allTests()) {
        const { state, errors: failures } = test.result();
        report.tests.push({
          name: test.fullName.toWellFormed(), state: state === 'pending' ? 'skipped' : state, message: all(failures),
          seconds: (test.diagnostic()?.duration ?? 0) / 1000,
        });
      }
    }
    report.error = errors.join('\n');
  },
};

// Prints the result as the last line.
export function tell() {
  fs.writeSync(1, `\n${JSON.stringify(report)}\n`);
}

export const asPattern = (name) => name.replace(/[[\]{}()*?!+@\\]/g, '\\$&');
