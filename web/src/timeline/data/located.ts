/** Finds the event that a slice of an answer stands for. */
import type { Located, Track } from "../../data/types";
import type { Run } from "../draw/pack";
import type { Row } from "../layout/rows";

export function located(row: Row, track: Track, lane: number, run: Run, index: number): Located {
  const { rects } = run;
  return {
    report: row.report, table: track.layer, process: row.process, row: rects.row[index]!, track: track.track, lane, start: rects.start[index]!,
    duration: rects.duration[index]!, name: rects.names[rects.name[index]!]?.text ?? "",
  };
}
