/** A link to another page: only of http(s), in a separate tab that knows nothing of this one; anything else is plain text. */
import type { ComponentChildren } from "preact";

export function SafeLink({ href, children }: { href: string; children: ComponentChildren }) {
  if (!/^https?:\/\//i.test(href)) return null;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}
