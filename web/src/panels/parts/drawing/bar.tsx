/** A share drawn as a bar with its figure in words beside it, for eyes and screen readers alike. */
import { percent } from "../table/units";

/** `share` and the longer, lighter `most` (of an estimate its bound) are from 0 to 1. */
export function Bar({ share, most, label }: { share: number; most?: number | null; label: string }) {
  return (
    <span class="p-share" role="img" aria-label={`${label}: ${percent(share)}`} title={`${label}: ${percent(share)}`}>
      {most != null && <span class="p-share-most" style={{ width: `${clamp(most) * 100}%` }} />}
      <span class="p-share-fill" style={{ width: `${clamp(share) * 100}%` }} />
    </span>
  );
}

function clamp(share: number): number {
  return Math.min(Math.max(Number.isFinite(share) ? share : 0, 0), 1);
}
