"""Puts `warplens.nvtx` under the names that PyPI nvtx's own tests import."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import warplens.nvtx


def _module(name: str, **names: Any) -> ModuleType:
    module = ModuleType(name)
    for key, value in names.items():
        setattr(module, key, value)
    sys.modules[name] = module
    return module


class _Profile:
    """Our Profile, with the private name that upstream's test reads: what is handed to sys.setprofile, which is itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        ours = warplens.nvtx.Profile(*args, **kwargs)
        self._profile = ours
        self.enable = ours.enable  # no Python function in between, which would be profiled
        self.disable = ours.disable


def install() -> None:
    """Make `import nvtx` give ours. What the tests only compare by identity without a tool gets one stand-in each."""
    ours: Any = warplens.nvtx
    # Upstream decides once, at first use, that there is no tool, and says so with one dummy object. Ours can hear of a
    # tool at any time, so there is no such object; an object of our real class stands in for it, so that the
    # bodies still go through our code.
    silent = not ours.attached()
    stand_in = ours.get_domain()
    public = {name: getattr(ours, name) for name in dir(ours) if not name.startswith("_")}
    if silent:
        public["get_domain"] = lambda name=None: stand_in
        public["annotate"] = type("annotate", (ours.annotate,), {"domain": stand_in})
    package = _module("nvtx", **public)
    package.__path__ = []
    missing: Any = object()
    implementation = _module("nvtx._lib")
    implementation.__path__ = []
    dummy_counter: Any = stand_in.get_counter("dummy", int) if silent else missing
    for name, names in {
        "nvtx.nvtx": {**public, "dummy_domain": stand_in if silent else missing},
        "nvtx.colors": {"_NVTX_COLORS": getattr(ours.colors, "_NVTX_COLORS", None)},
        "nvtx._lib.counters": {"dummy_counter": dummy_counter},
        "nvtx._lib.profiler": {"Profile": _Profile},
        "nvtx._lib.lib": {"NvtxWarning": ours.NvtxWarning},
        "nvtx.writer": {"PredefinedScope": ours.PredefinedScope},
    }.items():
        _module(name, **names)
