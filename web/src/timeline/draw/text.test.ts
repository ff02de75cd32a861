/** Names on the canvas. */
import { describe, expect, it, vi } from "vitest";
import { kindOf, short, shortest, stateOf } from "../../base/names";
import { TextFit } from "./text";

describe("short", () => {
  it.each([
    ["forward", "forward"],
    ["void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int, float)", "vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>"],
    ["void (anonymous namespace)::softmax_warp_forward<float>(float*)", "softmax_warp_forward<float>"],
    ["ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long)", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"],
    ["model.py(12): forward", "model.py(12): forward"],
    ["aten::add", "add"],
    ["step 12 of 40", "step 12 of 40"],
    ["", ""],
  ])("of %s is %s", (text, wanted) => expect(short(text)).toBe(wanted));
  it("leaves nothing that turns the direction of writing or ends a line", () => {
    expect(short("a\u202eb\nc\u0000d")).not.toMatch(/[\u0000-\u001f\u202e]/);
  });
  it("leaves out template arguments where room is short", () => expect(shortest("void ns::gemm<128, 64>(int)")).toBe("gemm"));
  it("leaves out what all calls of CUDA begin with", () => {
    expect(["cudaLaunchKernel", "cuMemAlloc_v2", "cuda_kernel", "cube"].map(shortest)).toEqual(["LaunchKernel", "MemAlloc_v2", "cuda_kernel", "cube"]);
  });
  it("knows a state by its first word", () => expect(["running", "blocked: io", "GIL hold"].map(stateOf)).toEqual(["running", "blocked", "hold"]));
  it("never ends in nothing", () => {
    for (const text of ["<lambda>", "::", "void ", "operator()", "a::", "(x)", "<<<>>>"]) expect(short(text)).not.toBe("");
  });
});

describe("TextFit", () => {
  const measure = vi.fn((text: string) => text.length * 6);
  it("writes names that fit, then shorter forms, then cuts", () => {
    const fit = new TextFit(measure);
    const name = "void ns::gemm_kernel<128, 64>(int)";
    expect(fit.fit(name, 400)).toBe("gemm_kernel<128, 64>");
    expect(fit.fit(name, 70)).toBe("gemm_kernel");
    expect(fit.fit(name, 40)).toBe("gemm_…");
    expect(fit.fit(name, 8)).toBe("");
  });
  it("measures a name once", () => {
    const fit = new TextFit(measure);
    fit.fit("forward", 100);
    measure.mockClear();
    fit.fit("forward", 90);
    expect(measure).not.toHaveBeenCalled();
  });
  it("copes with names of 10^5 characters and does not part letters", () => {
    const fit = new TextFit(measure);
    expect(fit.fit("x".repeat(100_000), 60).length).toBeLessThanOrEqual(10);
    expect(fit.fit("😀".repeat(50), 40)).toMatch(/^(😀)+…$/u);
  });
});

it.each([
  ["kernels", "gemm", "compute"], ["kernels", "ncclKernel", "communication"], ["memcpys", "HtoD", "to device"], ["memcpys", "DtoH", "to host"],
  ["memcpys", "DtoD", "on device"], ["cuda_api", "cudaLaunchKernel", "launch"], ["cuda_api", "cudaMalloc", "memory"], ["nvtx_gpu_projection", "x", "range"],
  ["something new", "x", "other"],
])("%s %s is %s", (layer, name, kind) => expect(kindOf(layer, name)).toBe(kind));
