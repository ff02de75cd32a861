/** The thread that fetches for the page: an answer is handed over in one piece, when all of it is there. */

export type Asked = { id: number; url: string } | { id: number; url: null };

/** `status` 0: nobody answered. */
export interface Answer {
  id: number;
  status: number;
  body: ArrayBuffer;
}

const running = new Map<number, AbortController>();

async function answer({ id, url }: { id: number; url: string }): Promise<Answer> {
  const control = new AbortController();
  running.set(id, control);
  try {
    const answered = await fetch(url, { credentials: "same-origin", cache: "no-store", signal: control.signal });
    return { id, status: answered.status, body: await answered.arrayBuffer() };
  } catch {
    return { id, status: 0, body: new ArrayBuffer(0) };
  } finally {
    running.delete(id);
  }
}

addEventListener("message", ({ data }: MessageEvent<Asked>) => {
  if (data.url === null) running.get(data.id)?.abort();
  else void answer({ id: data.id, url: data.url }).then((one) => postMessage(one, { transfer: [one.body] }));
});
postMessage(null);
