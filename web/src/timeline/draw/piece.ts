/** Chooses the tiles of a track that make up the view. */
import type { Track } from "../../data/types";
import { type Piece, pieces } from "../data/tiles";
import { toPixel } from "../layout/scale";
import type { Frame } from "./frame";

/** The pieces of a track's tiles that make up the view, with the pixels they fill. */
export function trackPieces(frame: Frame, report: number, track: Track): (Piece & { from: number; to: number })[] {
  const offset = frame.offsets[report] ?? 0;
  const { view, scale, width } = frame;
  return pieces(frame.store.get(report, track.track), view.begin - offset, view.end - offset).map((piece) => ({
    ...piece,
    from: Math.max(Math.round(toPixel(scale, piece.begin + offset)), 0),
    to: Math.min(Math.round(toPixel(scale, piece.end + offset)), width),
  }));
}
