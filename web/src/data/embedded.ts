/** A page that holds its data (`warplens view --export`): answers of the server's own functions, looked up and cut, never computed anew. */
import type { Blocks } from "./blocks";
import { countRects, cutPlot, cutRects, firstWhere } from "./cut";
import { decodePlots, decodeRects } from "./decode";
import type { Source, Span } from "./source";
import type {
  Alike, Difference, EventDetails, EventRef, Findings, Flame, Located, Meta, Plot, Rects, SearchAnswer, Selected, SourceLines, StatInfo, Steps, Table,
  TrackNode, ViewportQuery,
} from "./types";

/** What one report of the page has: `rects[k]` and `plots[k]` are the grains (ns) of its levels, the finest last: there, every slice is one. */
interface Levels {
  rects: number[];
  plots: number[];
}

export class Embedded implements Source {
  readonly #blocks: Blocks;
  /** Answers that were unpacked, by key. */
  readonly #kept = new Map<string, Promise<unknown>>();
  readonly #owners = new Map<number, Map<number, { layer: string; process: number }>>();

  constructor(blocks: Blocks) {
    this.#blocks = blocks;
  }

  meta(): Promise<Meta> {
    return this.#json<Meta>("meta");
  }

  tracks(report: number): Promise<TrackNode[]> {
    return this.#json<TrackNode[]>(`tracks/${report}`);
  }

  async viewport(query: ViewportQuery): Promise<Rects> {
    const levels = await this.#levels(query.report);
    const column = (query.end - query.begin) / Math.max(query.width, 1);
    // The coarsest level that is as fine as the columns; where that is too much, the next coarser one, until it fits.
    let level = levels.rects.findIndex((grain) => grain <= column);
    if (level < 0) level = levels.rects.length - 1;
    let whole = await this.#rects(query.report, level);
    while (level > 0 && countRects(whole, query) > query.limit) whole = await this.#rects(query.report, --level);
    return cutRects(whole, query);
  }

  async plots(query: ViewportQuery): Promise<Plot[]> {
    const levels = await this.#levels(query.report);
    const column = (query.end - query.begin) / Math.max(query.width, 1);
    let level = levels.plots.findIndex((grain) => grain <= column);
    if (level < 0) level = levels.plots.length - 1;
    if (level < 0) return [];
    const asked = new Set(query.tracks);
    const whole = await this.#keep(`plots/${query.report}/${level}`, async (key) => decodePlots(await this.#bytes(key)));
    return whole.filter((plot) => asked.has(plot.track)).map((plot) => cutPlot(plot, query.begin, query.end));
  }

  async event(of: EventRef): Promise<EventDetails> {
    const all = await this.#json<Record<string, EventDetails>>(`events/${of.report}`);
    return all[ref(of)] ?? (await this.#drawn(of));
  }

  async alike(of: EventRef): Promise<Alike> {
    const all = await this.#json<Record<string, Alike>>(`alike/${of.report}`);
    const { whole, at } = await this.#find(of);
    const found = all[String(whole.name[at])];
    if (found === undefined) throw new Error(await this.#without("statistics of this name"));
    return found;
  }

  async search(report: number, text: string, regex: boolean, from: number, limit: number): Promise<SearchAnswer> {
    const whole = await this.#finest(report);
    const matches = matcher(text, regex);
    const hit = whole.names.map((name) => matches(name.text));
    const owners = await this.#layers(report);
    const counts = new Map<string, { layer: string; text: string; count: number }>();
    const found: Located[] = [];
    for (const { track, lane, first, count } of whole.lanes) {
      const owner = owners.get(track);
      if (owner === undefined) continue;
      for (let at = first; at < first + count; at += 1) {
        const name = whole.name[at]!;
        if (hit[name] !== true) continue;
        const key = `${owner.layer} ${name}`;
        const sum = counts.get(key) ?? { layer: owner.layer, text: whole.names[name]!.text, count: 0 };
        sum.count += 1;
        counts.set(key, sum);
        found.push(located(whole, at, track, lane, owner));
      }
    }
    found.sort((a, b) => a.start - b.start);
    const middle = firstWhere(0, found.length, (at) => found[at]!.start >= from);
    const names = [...counts.values()].sort((a, b) => b.count - a.count);
    return { total: found.length, before: middle, names, events: found.slice(Math.max(middle - limit, 0), middle + limit) };
  }

  findings(report: number): Promise<Findings> {
    return this.#json<Findings>(`findings/${report}`);
  }

  statList(report: number): Promise<StatInfo[]> {
    return this.#json<StatInfo[]>(`stat-list/${report}`);
  }

  async stat(report: number, name: string, span?: Span): Promise<Table> {
    if (span !== undefined) throw new Error(await this.#without("tables of a part of the time"));
    return this.#json<Table>(`stat/${report}/${name}`);
  }

  async selected(_report: number, _span: Span, _tracks: number[]): Promise<Selected> {
    throw new Error(await this.#without("sums over a part of the time"));
  }

  async flame(report: number, kind: Flame["kind"], span?: Span): Promise<Flame> {
    if (span !== undefined) throw new Error(await this.#without("flame graphs of a part of the time"));
    return this.#json<Flame>(`flame/${report}/${kind}`);
  }

  async source(_report: number, _file: string, _span?: Span): Promise<SourceLines> {
    throw new Error(await this.#without("the text of source files"));
  }

  async steps(report: number, name = ""): Promise<Steps> {
    if (name !== "") throw new Error(await this.#without("steps of another name"));
    return this.#json<Steps>(`steps/${report}`);
  }

  diagnostics(report: number): Promise<Table> {
    return this.#json<Table>(`diagnostics/${report}`);
  }

  async sql(_report: number, _text: string): Promise<Table> {
    throw new Error(await this.#without("the tables that SQL asks"));
  }

  difference(): Promise<Difference | null> {
    return this.#blocks.has("difference") ? this.#json<Difference>("difference") : Promise.resolve(null);
  }

  /** A page never changes. */
  changed(_known: number[], signal: AbortSignal): Promise<number[]> {
    return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError"))));
  }

  async at(report: number, table: string, time: number): Promise<Located | null> {
    const whole = await this.#finest(report);
    const owners = await this.#layers(report);
    let best: Located | null = null;
    for (const { track, lane, first, count } of whole.lanes) {
      const owner = owners.get(track);
      if (owner?.layer !== table) continue;
      const at = firstWhere(first, first + count, (index) => whole.start[index]! >= time);
      if (at < first + count && (best === null || whole.start[at]! < best.start)) best = located(whole, at, track, lane, owner);
    }
    return best;
  }

  /** What the slices say of an event, for the many whose details are not in the page. */
  async #drawn(of: EventRef): Promise<EventDetails> {
    const { whole, at, track, lane } = await this.#find(of);
    const event = located(whole, at, track, lane, { layer: of.table, process: of.process });
    const note = await this.#without("more about this event");
    const fields = [
      { name: "start", value: event.start, unit: "ns" },
      { name: "duration", value: event.duration, unit: "ns" },
      { name: "note", value: note },
    ];
    return { event, title: event.name, fields, payload: null, stack: [], links: [], parents: [] };
  }

  async #find(of: EventRef): Promise<{ whole: Rects; at: number; track: number; lane: number }> {
    const whole = await this.#finest(of.report);
    const owners = await this.#layers(of.report);
    for (const { track, lane, first, count } of whole.lanes) {
      const owner = owners.get(track);
      if (owner?.layer !== of.table || owner.process !== of.process) continue;
      const place = whole.row.subarray(first, first + count).indexOf(of.row);
      if (place >= 0) return { whole, at: first + place, track, lane };
    }
    throw new Error(await this.#without("this event"));
  }

  async #layers(report: number): Promise<Map<number, { layer: string; process: number }>> {
    const known = this.#owners.get(report);
    if (known !== undefined) return known;
    const owners = new Map<number, { layer: string; process: number }>();
    const walk = (nodes: TrackNode[], process: number): void => {
      for (const node of nodes) {
        const own = node.process ?? process;
        if (node.track !== undefined) owners.set(node.track.track, { layer: node.track.layer, process: own });
        walk(node.children, own);
      }
    };
    walk(await this.tracks(report), 0);
    this.#owners.set(report, owners);
    return owners;
  }

  #levels(report: number): Promise<Levels> {
    return this.#json<Levels>(`levels/${report}`);
  }

  async #finest(report: number): Promise<Rects> {
    return this.#rects(report, (await this.#levels(report)).rects.length - 1);
  }

  #rects(report: number, level: number): Promise<Rects> {
    return this.#keep(`viewport/${report}/${level}`, async (key) => decodeRects(await this.#bytes(key), report));
  }

  #json<Answer>(key: string): Promise<Answer> {
    return this.#keep(key, async () => {
      const answer = await this.#blocks.json<Answer | { error: string }>(key);
      if (answer === null) throw new Error(await this.#without("this"));
      // What the server could not answer is kept as it said so.
      if (typeof answer === "object" && answer !== null && "error" in answer) throw new Error(answer.error);
      return answer;
    });
  }

  async #bytes(key: string): Promise<ArrayBuffer> {
    const bytes = await this.#blocks.bytes(key);
    if (bytes === null) throw new Error(await this.#without("this"));
    return bytes;
  }

  #keep<Answer>(key: string, make: (key: string) => Promise<Answer>): Promise<Answer> {
    const known = this.#kept.get(key) ?? make(key);
    this.#kept.set(key, known);
    return known as Promise<Answer>;
  }

  /** The sentence for what only a server can answer. */
  async #without(what: string): Promise<string> {
    const meta = await this.#blocks.json<Meta>("meta");
    return `This page, which was exported, does not contain ${what}. Open the report itself: warplens view ${meta?.reports[0]?.name ?? "REPORT"}`;
  }
}

function ref(of: EventRef): string {
  return `${of.table}/${of.process}/${of.row}`;
}

function located(whole: Rects, at: number, track: number, lane: number, owner: { layer: string; process: number }): Located {
  return {
    report: whole.report,
    table: owner.layer,
    process: owner.process,
    row: whole.row[at]!,
    track,
    lane,
    start: whole.start[at]!,
    duration: whole.duration[at]!,
    name: whole.names[whole.name[at]!]?.text ?? "",
  };
}

function matcher(text: string, regex: boolean): (name: string) => boolean {
  if (regex) {
    const pattern = new RegExp(text, "iu");
    return (name) => pattern.test(name);
  }
  const low = text.toLowerCase();
  return (name) => name.toLowerCase().includes(low);
}
