"""Collects facts about this host and this process for a recording.

The environment is not among them.
"""

from __future__ import annotations

import os
import platform
import socket
from pathlib import Path


def host_name() -> str:
    """Return the host's name, without characters that a file name cannot hold."""
    return socket.gethostname().replace("/", "_") or "localhost"


def boot_id() -> str:
    """Return the kernel's boot id: equal boot ids mean one CLOCK_MONOTONIC; empty if unknown."""
    return _first_line("/proc/sys/kernel/random/boot_id")


def start_ticks(pid: int) -> int | None:
    """Return field 22 of /proc/<pid>/stat, which with the pid names a process for ever.

    None if it is gone.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])


def process_name(pid: int) -> str:
    """Return the short name of a process, or `?`."""
    return _first_line(f"/proc/{pid}/comm") or "?"


def target() -> dict[str, str | int]:
    """Return what the report's `targets` table holds about this host."""
    return {
        "os": _os_name(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu_name(),
        "cpus": os.cpu_count() or 0,
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def _first_line(path: str) -> str:
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def _os_name() -> str:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        try:
            lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for line in lines:
            key, _, value = line.partition("=")
            if key == "PRETTY_NAME":
                return value.strip().strip("\"'")
    return platform.system()


def _cpu_name() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() in ("model name", "Hardware", "cpu model"):
                    return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
