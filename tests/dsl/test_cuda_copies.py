"""Asynchronous copies of kernels that run on the CPU: their data are there when they were waited for, and not before."""

from __future__ import annotations

import ctypes
import os
from functools import cache

import pytest

from warplens import intrakernel
from warplens.intrakernel.device.cuda_kernels import HostKernels
from warplens.intrakernel.dsl import cuda

pytestmark = pytest.mark.require("g++", "numpy")
LATENCY = 3_000_000  # ns
SOURCE = r"""
#include "warplens.cuh"
WARPLENS_TAGS(Tag, both, second, idle)

extern "C" __global__ void copies(const int *in, int *out, void *profile) {
  __shared__ __align__(16) int stage[2][128];
  warplens::Profiler prof(profile);
  const unsigned at = threadIdx.x * 4;
  for (int i = 0; i < 4; ++i) stage[0][at + i] = stage[1][at + i] = -1;
  auto both = prof.start();
  __pipeline_memcpy_async(&stage[0][at], &in[at], 16);
  __pipeline_commit();
  out[at] = stage[0][at];
  __pipeline_memcpy_async(&stage[1][at], &in[128 + at], 16);
  __pipeline_commit();
  __pipeline_wait_prior(1);
  out[at + 1] = stage[0][at + 1];
  out[at + 2] = stage[1][at + 2];
  __pipeline_wait_prior(0);
  out[at + 3] = stage[1][at + 3];
  prof.stop(both, Tag::both);
  WARPLENS_REGION(prof, Tag::idle);
  __pipeline_commit();  // nothing was begun: nothing to wait for
  __pipeline_wait_prior(0);
}

// Lane 0 sleeps, and the lanes of warp 1 wait for what it does then.
extern "C" __global__ void sleeper(unsigned *turns) {
  __shared__ unsigned done;
  if (threadIdx.x == 0) done = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    __nanosleep(2000000);
    atomicAdd(&done, 1u);
  }
  if (threadIdx.x >= 32) {
    const volatile unsigned &seen = done;
    while (seen == 0) {
      atomicAdd(turns, 1u);
      __nanosleep(0);
    }
  }
}
"""


@cache
def kernels() -> HostKernels:
    return HostKernels(SOURCE, ["copies", "sleeper"])


@pytest.mark.parametrize("latency", [None, LATENCY])
def test_data_are_there_once_they_were_waited_for(
    monkeypatch: pytest.MonkeyPatch, latency: int | None
) -> None:
    monkeypatch.delenv("WARPLENS_HOST_LATENCY_NS", raising=False)
    if latency is not None:
        monkeypatch.setitem(os.environ, "WARPLENS_HOST_LATENCY_NS", str(latency))
    numbers, out = (ctypes.c_int * 256)(*range(256)), (ctypes.c_int * 128)()
    buffer = intrakernel.allocate(1, 1, slots=8, tags=cuda.tags(SOURCE), device="cpu")
    with buffer.launch():
        kernels().launch("copies", 1, 32, numbers, out, buffer)
    for at in range(0, 128, 4):
        assert list(out[at : at + 4]) == [-1, at + 1, -1, 128 + at + 3], (
            "first not yet there, then there; the same of the second"
        )
    events = buffer.decode().events
    (both,) = events[events["tag"] == 0]
    assert both["end"] - both["start"] >= (latency or 0)


def test_a_thread_that_sleeps_lets_the_others_go_on() -> None:
    turns = (ctypes.c_uint * 1)()
    kernels().launch("sleeper", 1, 64, turns)
    assert turns[0] >= 32, "each of them looked at least once before it was done"
