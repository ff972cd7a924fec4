Date.now = () => 0
globalThis.setTimeout = (act, _ms, ...given) => { act?.(...given); return 1 }
if (globalThis.performance) globalThis.performance.now = () => 0
