/** Tests requests to the server and the handling of refusals; only `fetch` is replaced. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { Http, Refused, numbers } from "./http";
import { kept } from "./kept";
import type { Source } from "./source";

afterEach(() => vi.unstubAllGlobals());

function answering(body: unknown, status = 200) {
  const asked = vi.fn(async (_url: URL, _options?: RequestInit) => new Response(JSON.stringify(body), { status }));
  vi.stubGlobal("fetch", asked);
  return asked;
}

const http = () => new Http(null, "http://127.0.0.1:1/api/1/");

describe("addresses", () => {
  it("names tracks as runs", () => {
    expect(numbers([])).toBe("");
    expect(numbers([9, 1, 5, 4, 6, 6])).toBe("1,4-6,9");
    expect(numbers([1, 2])).toBe("1-2");
  });
  it("is one endpoint for each method, with its arguments", async () => {
    const asked = answering({ names: [] });
    await http().search(1, "a&b=<", true, 12.5, 3);
    expect(String(asked.mock.calls[0]![0])).toBe("http://127.0.0.1:1/api/1/search?report=1&text=a%26b%3D%3C&regex=1&from=12.5&limit=3");
    await http().stat(0, "nvtx sum", { begin: 1, end: 2 });
    expect(String(asked.mock.calls[1]![0])).toBe("http://127.0.0.1:1/api/1/stat/nvtx%20sum?report=0&begin=1&end=2");
    expect(asked.mock.calls[1]![1]).toMatchObject({ credentials: "same-origin" });
  });
  it("posts SQL, which may be long", async () => {
    const asked = answering({ rows: [] });
    await http().sql(0, "select 1");
    expect(asked.mock.calls[0]![1]).toMatchObject({ method: "POST", body: '{"report":0,"text":"select 1"}' });
  });
});

describe("refusals", () => {
  it("are the server's own words", async () => {
    answering({ error: "There is no table x", hint: "Did you mean kernels?" }, 400);
    await expect(http().meta()).rejects.toThrow(/^There is no table x\. Did you mean kernels\?$/);
  });
  it("tell who lost the token what to do", async () => {
    answering({ error: "no" }, 401);
    await expect(http().meta()).rejects.toThrow("`warplens view` printed");
  });
  it("tell that nobody answers, but not where the question was given up", async () => {
    vi.stubGlobal("fetch", vi.fn(async () => Promise.reject(new TypeError("Failed to fetch"))));
    await expect(http().meta()).rejects.toThrow("still running");
    const control = new AbortController();
    control.abort();
    await expect(http().search(0, "", false, 0, 1, control.signal)).rejects.not.toBeInstanceOf(Refused);
  });
});

describe("kept", () => {
  it("asks once for what stays, each time for what does not, and again after a failure or news", async () => {
    let failing = true;
    const of = {
      findings: vi.fn(async (report: number) => ({ of: report })),
      steps: vi.fn(async () => (failing ? Promise.reject(new Error("busy")) : { name: "step" })),
      meta: vi.fn(async () => ({})),
    };
    const source = kept(of as unknown as Source);
    expect(await source.findings(0)).toBe(await source.findings(0));
    await source.findings(1);
    expect(of.findings).toHaveBeenCalledTimes(2);
    await source.meta();
    await source.meta();
    expect(of.meta).toHaveBeenCalledTimes(2);
    await expect(source.steps(0)).rejects.toThrow("busy");
    failing = false;
    expect(await source.steps(0)).toEqual({ name: "step" });
    source.forget();
    await source.findings(0);
    expect(of.findings).toHaveBeenCalledTimes(3);
  });
});
