/** The shapes of requests and answers, as in `docs/dev/formats/viewer.md`. Times are ns from the report's origin. */

/** Names one event in all reports: the table's ids are `process * 2^32 + row`. */
export interface EventRef {
  report: number;
  table: string;
  process: number;
  row: number;
}

/** Where an event lies on the timeline. */
export interface Located extends EventRef {
  track: number;
  lane: number;
  start: number;
  duration: number;
  name: string;
}

export interface ReportMeta {
  report: number;
  name: string;
  command: string;
  hosts: string[];
  begin: number;
  end: number;
  events: number;
  /** ns since 1970 of time 0, for people; null where it is not known. */
  realtime: number | null;
  /** Grows when a running capture was refreshed. */
  generation: number;
  live: boolean;
  /** Rows are being computed that come with the next generation. */
  growing?: boolean;
  /** How many rows the Diagnostics panel has. */
  diagnostics: number;
  /** Of these, how many tell of a loss. */
  warnings: number;
}

export interface Meta {
  version: 1;
  title: string;
  reports: ReportMeta[];
  /** The features that the report has data for: "kernels", "samples", "steps", "memory", … */
  features: string[];
}

export type TrackKind = "slices" | "marks" | "states" | "samples" | "counter";

export interface TrackNode {
  /** Stable between visits, for the URL: "host:0/process:3/thread:1/nvtx". */
  id: string;
  kind: string;
  name: string;
  /** Grey words beside the name: "pid 4711", "H100 80GB". */
  detail?: string;
  children: TrackNode[];
  track?: Track;
  /** Open at first sight? */
  open?: boolean;
  rank?: number;
  device?: number;
  process?: number;
}

export interface Track {
  report: number;
  track: number;
  kind: TrackKind;
  /** Table or layer of the index: "nvtx_ranges", "kernels", "cuda_api", "nvtx_gpu_projection", … */
  layer: string;
  lanes: number;
  events: number;
  busy: number;
  begin: number;
  end: number;
  /** Counters: unit, and the highest and lowest value. */
  unit?: string;
  low?: number;
  high?: number;
}

/** Rectangles of a viewport, column-wise; runs of one lane one after the other (`lanes`). */
export interface Rects {
  report: number;
  begin: number;
  end: number;
  /** Rectangles narrower than this (ns) were joined. */
  grain: number;
  lanes: { track: number; lane: number; first: number; count: number }[];
  start: Float64Array;
  duration: Float64Array;
  /** Index into `names`. */
  name: Uint32Array;
  /** Of the longest slice in the rectangle. */
  row: Uint32Array;
  /** Slices in it. */
  slices: Uint32Array;
  /** Share of its width in which something ran, 0 to 1. */
  busy: Float32Array;
  /** Events of one launch have the same number; 0xffffffff where there is none. */
  link: Uint32Array;
  names: { text: string; color: number | null }[];
}

/** A counter, one entry per column that has a value. */
export interface Plot {
  track: number;
  begin: number;
  end: number;
  time: Float64Array;
  low: Float64Array;
  high: Float64Array;
  last: Float64Array;
}

export interface ViewportQuery {
  report: number;
  begin: number;
  end: number;
  /** Columns, device pixels. */
  width: number;
  tracks: number[];
  /** Maximum number of rectangles; the answer becomes coarser to stay below it. */
  limit: number;
  generation: number;
}

export interface Field {
  name: string;
  value: string | number | boolean | null;
  unit?: string;
}

export interface EventDetails {
  event: Located;
  title: string;
  fields: Field[];
  /** NVTX payload as JSON, or null. */
  payload: unknown;
  stack: { function: string; module: string; file: string; line: number | null }[];
  /** launch, kernel, api, nvtx, wait, collective: arrows go to these. */
  links: (Located & { relation: string })[];
  /** Enclosing ranges, outermost first. */
  parents: Located[];
}

export interface Alike {
  name: string;
  count: number;
  total: number;
  minimum: number;
  median: number;
  p99: number;
  maximum: number;
  /** Edges (ns, one more than counts) and counts. */
  edges: number[];
  counts: number[];
  longest: Located[];
}

export interface Column {
  name: string;
  unit: string | null;
  kind: "number" | "text" | "bool" | "time";
}

/** A result with rows; `links[i]` is where row i lies on the timeline. `cut`: there were more rows than these. */
export interface Table {
  title: string;
  columns: Column[];
  rows: (string | number | boolean | null)[][];
  links?: (Located | null)[];
  cut?: boolean;
  note?: string;
}

export interface StatInfo {
  name: string;
  title: string;
  available: boolean;
}

export interface Evidence {
  text: string;
  start: number;
  end: number;
  event: Located | null;
}

export interface Finding {
  rule: string;
  subject: string;
  title: string;
  cause: string;
  fix: string;
  link: string;
  severity: "high" | "medium" | "low" | "info";
  confidence: string;
  bound: number | null;
  estimate: number | null;
  /** What fixes of other findings win of it, too, ns. */
  shared: number;
  occurrences: number;
  wrongWhen: string;
  evidence: Evidence[];
}

export interface Findings {
  findings: Finding[];
  notJudged: { rule: string; why: string }[];
  silent: string[];
}

export interface SearchAnswer {
  /** Events of all hits in the report. */
  total: number;
  /** Those that begin before `from`; null: too many to count. */
  before: number | null;
  names: { layer: string; text: string; count: number }[];
  /** Around `from`, in order of time. */
  events: Located[];
}

export interface Selected {
  begin: number;
  end: number;
  /** Busy share of each asked track, 0 to 1. */
  tracks: { track: number; busy: number; events: number }[];
  /** By layer and name, most time first. */
  names: { layer: string; name: string; count: number; total: number; mean: number; maximum: number }[];
}

export interface FlameNode {
  name: string;
  /** File and first line of a function of Python: `/app/train.py:10`. */
  place?: string;
  value: number;
  self: number;
  children: FlameNode[];
}

export interface Flame {
  kind: "samples" | "wall" | "tasks" | "nvtx" | "kernels" | "python";
  unit: "ns" | "samples";
  root: FlameNode;
}

export interface SourceLine {
  line: number;
  /** Null: the file is not on this machine. */
  text: string | null;
  /** Shares of all samples, 0 to 1, where there are some: those in which the line was active, and those that ended in it. */
  function?: string;
  total?: number;
  self?: number;
  instructions?: string;
}

/** The lines of a file; of long ones and of libraries those near a sample. */
export interface SourceLines {
  files: { path: string; total: number; self: number; library: boolean }[];
  path: string;
  note: string;
  lines: SourceLine[];
}

export interface Steps {
  name: string;
  /** One for each step and process. */
  steps: { number: number; process: number; rank: number | null; start: number; end: number; parts: Record<string, number> }[];
  note?: string;
}

/** What `warplens diff` says of the two reports of this view, and where they can be laid on each other. */
export interface Difference {
  tables: Table[];
  /** Pairs of times of the same step or range in reports 0 and 1. */
  anchors: { label: string; a: number; b: number }[];
}

export interface Failure {
  error: string;
  hint?: string;
}
