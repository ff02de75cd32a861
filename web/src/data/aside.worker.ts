/** The thread that fetches for the page: over one socket, else with single requests. It hands an answer over when all of it has come. */

/** First where to ask; then questions by what comes behind that. */
export type Asked = { base: string } | { id: number; question: string } | { id: number; question: null };

/** `status` 0: nobody answered. */
export interface Answer {
  id: number;
  status: number;
  body: ArrayBuffer;
}

/** Number and status before the body, u32 each. */
const HEAD = 8;
/** A socket that does not open is waited for so long, ms. */
const PATIENCE = 2000;

let base = "";
let socket: WebSocket | null = null;
/** What the socket was asked and has not answered. */
const waiting = new Map<number, string>();
const running = new Map<number, AbortController>();

function give(answer: Answer): void {
  postMessage(answer, { transfer: [answer.body] });
}

/** Opens the socket; `done` when it is open or will not be. */
function connect(done: () => void): void {
  const url = new URL("channel", base);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const made = new WebSocket(url);
  made.binaryType = "arraybuffer";
  const late = setTimeout(() => made.close(), PATIENCE);
  let wasOpen = false;
  made.addEventListener("open", () => {
    clearTimeout(late);
    wasOpen = true;
    socket = made;
    done();
  });
  made.addEventListener("message", ({ data }: MessageEvent<ArrayBuffer>) => {
    const [id, status] = new Uint32Array(data, 0, 2);
    if (waiting.delete(id!)) give({ id: id!, status: status!, body: data.slice(HEAD) });
  });
  made.addEventListener("close", () => {
    clearTimeout(late);
    if (!wasOpen) return done(); // A proxy that lets no socket through will not do so later.
    socket = null;
    const left = [...waiting];
    waiting.clear();
    for (const [id, question] of left) void request(id, question);
  });
}

async function request(id: number, question: string): Promise<void> {
  const control = new AbortController();
  running.set(id, control);
  try {
    const answered = await fetch(new URL(question, base), { credentials: "same-origin", cache: "no-store", signal: control.signal });
    give({ id, status: answered.status, body: await answered.arrayBuffer() });
  } catch {
    give({ id, status: 0, body: new ArrayBuffer(0) });
  } finally {
    running.delete(id);
  }
}

addEventListener("message", ({ data }: MessageEvent<Asked>) => {
  if ("base" in data) {
    base = data.base;
    connect(() => postMessage(null));
  } else if (data.question === null) {
    waiting.delete(data.id);
    running.get(data.id)?.abort();
  } else if (socket !== null) {
    waiting.set(data.id, data.question);
    socket.send(`${data.id} ${data.question}`);
  } else {
    void request(data.id, data.question);
  }
});
