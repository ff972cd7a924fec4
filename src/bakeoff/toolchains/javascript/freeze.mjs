// Where a suite replaces nothing that is built in, nobody can; as in a worker.
import { mount } from 'svelte';
import { freezeBuiltins } from './builtins.mjs';

// Svelte changes arrays when it first mounts something.
mount(() => {}, { target: document.createElement('div') });
freezeBuiltins(['prepareStackTrace']); // Vitest reads stacks by it
for (const name of ['binding', '_linkedBinding', 'dlopen', 'getBuiltinModule', 'mainModule', '_getActiveHandles', 'abort', 'kill']) {
  Object.defineProperty(process, name, { value: undefined, configurable: false, writable: true });
}
