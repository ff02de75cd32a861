/** The severity of a finding as a word. */
import type { Finding } from "../../data/types";

/** A word and a shape, so that nothing hangs on colour alone. */
export function Severity({ of }: { of: Finding["severity"] }) {
  return <span class={`p-severity p-severity-${of}`}>{of}</span>;
}
