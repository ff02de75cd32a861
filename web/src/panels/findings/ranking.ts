/** Orders findings by severity, then by cost, and computes the cost as a share of the run. */
import type { Finding } from "../../data/types";

export const SEVERITIES = ["high", "medium", "low", "info"] as const;

/** Return them with the gravest first; of one severity the dearest. */
export function ranked(findings: readonly Finding[]): Finding[] {
  return [...findings].sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) || cost(b) - cost(a));
}

/** What a finding costs, ns: what a fix is expected to win, else what none can exceed. */
export function cost(finding: Finding): number {
  return finding.estimate ?? finding.bound ?? 0;
}

/** Shares of a run of `span` ns: what it is expected to cost, and at most; null where it has no price. */
export function shares(finding: Finding, span: number): { share: number; most: number } | null {
  if (finding.bound === null && finding.estimate === null) return null;
  const most = finding.bound ?? finding.estimate ?? 0;
  return { share: cost(finding) / span, most: most / span };
}
