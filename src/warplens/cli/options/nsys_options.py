"""The options and traces of `nsys profile` that a user may type, and those without effect yet.

One row per option: its names, its kind (`flag` takes `true` or `false` or nothing, `value` takes one), and the values with
which it has no effect, so that no message is needed. What gets built leaves this table for `commands/profile.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from warplens.recording.options.cpu import CPU_TRACES
from warplens.recording.options.library_ranges import SWITCHES, VERBOSE

_TABLE = """
-n --inherit-environment                 flag   true
-w --show-output                         flag   true
-x --stop-on-exit                        flag   true
--accelerator-trace                      value  none
--after-collection-start                 value
--after-report-ready                     value
--auto-report-name                       flag   false
--command-file                           value
--cpu-cluster-events                     value  none
--cpu-core-events                        value  none
--cpu-core-metrics                       value  none
--cpu-metrics                            value  none
--cpu-socket-events                      value  none
--cpu-socket-metrics                     value  none
--cuda-trace-scope                       value  process-tree
--dask                                   value  none
--debug-symbols                          value
--discard-environment                    flag   true false
--duration-frames                        value
--dx-force-declare-adapter-removal-support  flag  false
--dx12-gpu-workload                      value  none false
--dx12-wait-calls                        flag   false
--el1-sampling                           flag   false
--el1-sampling-config                    value
--enable                                 value
--etw-provider                           value
--event-sample                           value  none
--event-sampling-frequency               value
--event-sampling-interval                value
--export                                 value  none
--flush-on-cudaprofilerstop              flag   true
--ftrace                                 value  none
--ftrace-keep-user-config                flag   false
--gds-metrics                            value  none
--gpu-metrics-set                        value
--gpu-video-device                       value  none
--gpu-video-devices                      value  none
--gpuctxsw                               flag   false
--hotkey-capture                         value
--ib-net-info-devices                    value  none
--ib-net-info-files                      value
--ib-net-info-output                     value
--ib-switch-congestion-device            value  none
--ib-switch-congestion-devices           value  none
--ib-switch-congestion-nic-device        value
--ib-switch-congestion-percent           value
--ib-switch-congestion-threshold-high    value
--ib-switch-metrics-device               value  none
--ib-switch-metrics-devices              value  none
--isr                                    value  false
--mpi-impl                               value
--nccl-trace                             value  none
--nic-metrics                            value  none false
--opengl-gpu-workload                    flag   true false
--os-events                              value  none
--osrt-backtrace-stack-size              value
--process-scope                          value  main process-tree
--python-backtrace                       value  none false
--pytorch                                value  none
--qnx-kernel-events                      value  none
--qnx-kernel-events-mode                 value
--reflex-events                          flag   false
--resolve-symbols                        flag   true false
--retain-etw-files                       flag   false
--run-as                                 value
--samples-per-backtrace                  value
--sampling-period                        value
--sampling-trigger                       value
--session                                value
--show-source-info                       flag   true false
--soc-metrics                            flag   false
--soc-metrics-frequency                  value
--soc-metrics-set                        value
--start-frame-index                      value
--storage-metrics                        value  none
--syscall                                value  none
--trace-fork-before-exec                 flag   true false
--vsync                                  flag   false
--vulkan-gpu-workload                    value  none false
--wddm-additional-events                 flag   true false
--wddm-backtraces                        flag   true false
--xhv-trace                              value
--xhv-trace-events                       value
"""

LIBRARY_TRACES = (*SWITCHES, *VERBOSE)
BUILT_TRACES = ("cuda", "nvtx", "torch", *CPU_TRACES, *LIBRARY_TRACES)
_LATER_TRACES = """
cuda-hw nvml
cudla cudla-verbose
dx11 dx11-annotations dx12 dx12-annotations gds mpi nvvideo openacc opengl opengl-annotations openmp
openxr openxr-annotations oshmem s3 s3-verbose syscall tegra-accelerators ucx vulkan vulkan-annotations wddm
"""
LATER_TRACES = frozenset(_LATER_TRACES.split())
HARDWARE = "cuda-hw"
ALIASES = {
    "python-gil": "gil",
    "cuda-sw": "cuda",
}  # cuda-sw: CUPTI's instrumented trace, which nsys prefers to the hardware's only where it must


@dataclass(frozen=True, slots=True)
class Later:
    """An option that is accepted and not acted on.

    With a value of `silent` it asks for nothing anyway.
    """

    name: str
    flag: bool
    silent: tuple[str, ...]


def _read(table: str) -> dict[str, Later]:
    options: dict[str, Later] = {}
    for line in table.strip().splitlines():
        words = line.split()
        names = [word for word in words if word.startswith("-")]
        kind, *silent = words[len(names) :]
        later = Later(names[-1], kind == "flag", tuple(silent))
        options.update(dict.fromkeys(names, later))
    return options


LATER_OPTIONS = _read(_TABLE)
