/** Caches answers that cannot change while a report is open: a panel that opens again costs nothing. */
import type { Source } from "./source";

/** Kept answers, the newest last; far more than panels there are. */
const MOST = 200;

const LASTING = ["event", "alike", "findings", "statList", "stat", "flame", "steps", "diagnostics", "difference"] as const;
type Lasting = (typeof LASTING)[number];

/** A source that remembers; `forget` when a report has grown. What failed is not remembered. */
export function kept(of: Source): Source & { forget(): void } {
  const answers = new Map<string, Promise<unknown>>();
  const remember = (method: Lasting) => {
    const ask = (words: unknown[]) => (of as unknown as Record<Lasting, (...words: unknown[]) => Promise<unknown>>)[method](...words);
    return (...words: unknown[]): Promise<unknown> => {
      const key = JSON.stringify([method, ...words]);
      const known = answers.get(key);
      answers.delete(key);
      const answer = known ?? ask(words);
      answers.set(key, answer);
      if (known === undefined) {
        answer.catch(() => answers.get(key) === answer && answers.delete(key));
        if (answers.size > MOST) answers.delete(answers.keys().next().value!);
      }
      return answer;
    };
  };
  const lasting = Object.fromEntries(LASTING.map((method) => [method, remember(method)]));
  return new Proxy(of, {
    get(target, name) {
      if (name === "forget") return () => answers.clear();
      if (typeof name === "string" && name in lasting) return lasting[name];
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  }) as Source & { forget(): void };
}
