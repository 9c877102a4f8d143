"use strict";

// The part that is written in Go: keys, boxes, alerts. It is loaded when it is first called.
const core = (() => {
  const program = "{{phone.wasm}}";
  const patience = 20 * 1000;
  let loading = null;

  async function load() {
    const part = "a part of this page could not be loaded";
    const response = (await caches.match(new URL(program, location.href))) ??
      (await fetch(program, { signal: AbortSignal.timeout(patience) }).catch(() => { throw new Error(`${part}: the server cannot be reached`); }));
    if (!response.ok) throw new Error(`${part} (${response.status})`);
    const go = new Go();
    const ready = new Promise((resolve) => { globalThis.sealpushReady = resolve; });
    const { instance } = await WebAssembly.instantiateStreaming(response, go.importObject);
    go.run(instance).finally(() => { loading = null; }); // it ends only when it fails
    return ready;
  }

  async function functions() {
    loading ??= load().catch((err) => { loading = null; throw err; });
    return loading;
  }

  async function call(name, ...args) {
    const answer = (await functions())[name](...args);
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer.value;
  }

  return {
    load: functions,
    freshFor: async () => (await functions()).freshFor,
    generate: (suite) => call("generate", suite),
    open: (phone, suite, ciphertext) => call("open", phone.suite, phone.seed, suite, ciphertext),
    openText: (phone, box) => call("openText", phone.suite, phone.seed, box),
    seal: (publicKey, message) => call("seal", publicKey, message),
    trial: (phone, host) => call("trial", phone.suite, phone.seed, host),
  };
})();
