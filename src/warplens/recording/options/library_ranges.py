"""NVIDIA libraries that annotate themselves with NVTX, and the variables that switch it on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# Name of the trace -> variables. NCCL needs none; what it needs is that nobody switches it off.
SWITCHES: dict[str, tuple[str, ...]] = {
    "cublas": ("CUBLAS_NVTX_LEVEL", "CUBLASLT_NVTX_LEVEL", "CUBLASXT_NVTX_LEVEL"),
    "cudnn": ("CUDNN_NVTX_LEVEL",),
    "cusolver": ("CUSOLVERDN_NVTX_LEVEL",),
    "cusparse": ("CUSPARSE_NVTX_LEVEL",),
    "nccl": (),
}
VERBOSE = {f"{name}-verbose": name for name in ("cublas", "cusolver", "cusparse")}
_SILENCERS = {"nccl": "NCCL_NVTX_DISABLE"}


def switched_on(traces: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that let the libraries of `traces` speak.

    What the user has set counts more than we do.
    """
    levels: dict[str, str] = {}
    for trace in traces:
        for name in SWITCHES.get(VERBOSE.get(trace, trace), ()):
            levels[name] = "2" if trace in VERBOSE else levels.get(name, "1")
    return {name: level for name, level in levels.items() if name not in environment}


def silenced(traces: Iterable[str], environment: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return the settings that silence libraries of `traces`: trace, variable, value."""
    found = []
    for trace in traces:
        name = VERBOSE.get(trace, trace)
        found += [(trace, switch, "0") for switch in SWITCHES.get(name, ()) if environment.get(switch) == "0"]
        silencer = _SILENCERS.get(name)
        if silencer is not None and environment.get(silencer, "0") not in ("", "0"):
            found.append((trace, silencer, environment[silencer]))
    return found
