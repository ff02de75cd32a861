/** Data from the server of `warplens view`: one method of `Source` for one endpoint; a cookie identifies the page. */
import { whenIdle } from "../base/dom";
import { Aside } from "./aside";
import { decodePlots, decodeRects } from "./decode";
import type { First } from "./first";
import type { Source, Span } from "./source";
import type {
  Alike, Difference, EventDetails, EventRef, Failure, Findings, Flame, Located, Meta, Plot, Rects, SearchAnswer, Selected, SourceLines, StatInfo, Steps, Table,
  TrackNode, ViewportQuery,
} from "./types";

type Value = string | number | boolean | undefined;

/** What the server refused or could not do; `status` is that of HTTP, 0 where nobody answered. */
export class Refused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export class Http implements Source {
  readonly #base: URL;
  readonly #aside: Aside;
  /** Answers that came with the page: good for the first time that they are asked for. */
  #meta: Meta | null;
  readonly #trees: Map<number, TrackNode[]>;

  constructor(first: First | null = null, base: string | URL = new URL("api/1/", document.baseURI), aside = new Aside()) {
    this.#base = new URL(base);
    this.#aside = aside;
    this.#meta = first?.meta ?? null;
    this.#trees = new Map(first?.tracks.entries());
  }

  async meta(): Promise<Meta> {
    const known = this.#meta;
    this.#meta = null;
    return known ?? this.#json("meta");
  }

  async tracks(report: number): Promise<TrackNode[]> {
    const known = this.#trees.get(report);
    this.#trees.delete(report);
    return known ?? this.#json("tracks", { report });
  }

  async viewport(query: ViewportQuery, signal?: AbortSignal): Promise<Rects> {
    return decodeRects(await this.#bytes("viewport", view(query), signal), query.report);
  }

  async plots(query: ViewportQuery, signal?: AbortSignal): Promise<Plot[]> {
    return decodePlots(await this.#bytes("plots", view(query), signal));
  }

  event(of: EventRef): Promise<EventDetails> {
    return this.#json("event", reference(of));
  }

  alike(of: EventRef): Promise<Alike> {
    return this.#json("alike", reference(of));
  }

  search(report: number, text: string, regex: boolean, from: number, limit: number, signal?: AbortSignal): Promise<SearchAnswer> {
    return this.#json("search", { report, text, regex, from, limit }, signal);
  }

  findings(report: number): Promise<Findings> {
    return this.#json("findings", { report });
  }

  statList(report: number): Promise<StatInfo[]> {
    return this.#json("stat-list", { report });
  }

  stat(report: number, name: string, span?: Span): Promise<Table> {
    return this.#json(`stat/${encodeURIComponent(name)}`, { report, ...span });
  }

  selected(report: number, span: Span, tracks: number[], signal?: AbortSignal): Promise<Selected> {
    return this.#json("selected", { report, begin: span.begin, end: span.end, tracks: numbers(tracks) }, signal);
  }

  flame(report: number, kind: Flame["kind"], span?: Span): Promise<Flame> {
    return this.#json("flame", { report, kind, ...span });
  }

  source(report: number, file: string, span?: Span): Promise<SourceLines> {
    return this.#json("source", { report, file, ...span });
  }

  steps(report: number, name = ""): Promise<Steps> {
    return this.#json("steps", name === "" ? { report } : { report, name });
  }

  diagnostics(report: number): Promise<Table> {
    return this.#json("diagnostics", { report });
  }

  sql(report: number, text: string): Promise<Table> {
    return this.#json("sql", {}, undefined, { report, text });
  }

  difference(): Promise<Difference | null> {
    return this.#json("difference");
  }

  async changed(known: number[], signal: AbortSignal): Promise<number[]> {
    return this.#json("changed", { known: known.join(",") }, signal);
  }

  at(report: number, table: string, time: number): Promise<Located | null> {
    return this.#json("at", { report, table, time });
  }

  async #json<T>(name: string, query: Record<string, Value> = {}, signal?: AbortSignal, body?: unknown): Promise<T> {
    const answer = await this.#ask(name, query, signal, body);
    return (await answer.json()) as T;
  }

  async #bytes(name: string, query: Record<string, Value>, signal?: AbortSignal): Promise<ArrayBuffer> {
    const { pathname, search } = this.#url(name, query);
    const aside = this.#aside.ask(pathname.slice(this.#base.pathname.length) + search, signal);
    if (aside === null) {
      const bytes = await (await this.#ask(name, query, signal)).arrayBuffer();
      // Not before: the first answer is what the page waits for.
      whenIdle(() => this.#aside.start(this.#base));
      return bytes;
    }
    const { status, body } = await aside;
    if (status === 0) throw unanswered();
    if (status !== 200) throw await refusal(new Response(body, { status }));
    return body;
  }

  #url(name: string, query: Record<string, Value>): URL {
    const url = new URL(name, this.#base);
    for (const [key, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(key, typeof value === "boolean" ? String(Number(value)) : String(value));
    }
    return url;
  }

  async #ask(name: string, query: Record<string, Value>, signal?: AbortSignal, body?: unknown): Promise<Response> {
    const url = this.#url(name, query);
    const options: RequestInit = { credentials: "same-origin", cache: "no-store" };
    if (signal !== undefined) options.signal = signal;
    if (body !== undefined) {
      options.method = "POST";
      options.headers = { "content-type": "application/json" };
      options.body = JSON.stringify(body);
    }
    let answer: Response;
    try {
      answer = await fetch(url, options);
    } catch (failure) {
      if (signal?.aborted) throw failure;
      throw unanswered();
    }
    if (!answer.ok) throw await refusal(answer);
    return answer;
  }
}

function unanswered(): Refused {
  return new Refused(0, "The server does not answer. Is `warplens view` still running?");
}

async function refusal(answer: Response): Promise<Refused> {
  if (answer.status === 401) {
    return new Refused(401, "The token of this page is no longer valid. Open the address that `warplens view` printed: it has the token.");
  }
  try {
    const { error, hint } = (await answer.json()) as Failure;
    if (typeof error === "string") return new Refused(answer.status, hint ? `${error}. ${hint}`.replace(/([.!?:])\. /, "$1 ") : error);
  } catch {
    // Not JSON: something else than our server said it.
  }
  return new Refused(answer.status, `The server answered with status ${answer.status}.`);
}

function view(query: ViewportQuery): Record<string, Value> {
  return { ...query, tracks: numbers(query.tracks) };
}

function reference(of: EventRef): Record<string, Value> {
  return { report: of.report, table: of.table, process: of.process, row: of.row };
}

/** `1,4-9`: sorted, runs as ranges, so that hundreds of tracks are a short address. */
export function numbers(list: readonly number[]): string {
  const sorted = [...new Set(list)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length; i += 1) {
    const first = sorted[i]!;
    while (i + 1 < sorted.length && sorted[i + 1] === sorted[i]! + 1) i += 1;
    const last = sorted[i]!;
    parts.push(first === last ? `${first}` : `${first}-${last}`);
  }
  return parts.join(",");
}
