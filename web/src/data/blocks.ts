/** Reads answers embedded in the page, gzipped and in base64: `<script type="application/octet-stream" data-answer="…">`. */

/** The answers of a page by their key; each is unpacked when somebody asks. */
export class Blocks {
  readonly #texts: Map<string, string>;

  constructor(texts: Map<string, string>) {
    this.#texts = texts;
  }

  /** Those of this document; null where it has none, for a server has them. */
  static of(page: Document): Blocks | null {
    const found = [...page.querySelectorAll<HTMLScriptElement>("script[data-answer]")];
    return found.length === 0 ? null : new Blocks(new Map(found.map((one) => [one.dataset["answer"] ?? "", one.text])));
  }

  has(key: string): boolean {
    return this.#texts.has(key);
  }

  /** The bytes of an answer, null where the page has no such one. */
  async bytes(key: string): Promise<ArrayBuffer | null> {
    const text = this.#texts.get(key);
    if (text === undefined) return null;
    const packed = atob(text.trim());
    const gzip = new Uint8Array(packed.length);
    for (let at = 0; at < packed.length; at += 1) gzip[at] = packed.codePointAt(at)!;
    const plain = new Blob([gzip]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(plain).arrayBuffer();
  }

  async json<Answer>(key: string): Promise<Answer | null> {
    const bytes = await this.bytes(key);
    return bytes === null ? null : (JSON.parse(new TextDecoder().decode(bytes)) as Answer);
  }
}
