"""How programs are built for the sanitizers of GCC, and run."""

from __future__ import annotations

# GCC's thread sanitizer does not know atomic_thread_fence and says so; nothing here relies on one between threads.
THREADS = ("-g1", "-fsanitize=thread", "-Wno-tsan")
MEMORY = ("-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
PATIENCE_S = 120  # a program that hangs is a failure, not a wait for CI's own limit
# Logs live as long as the process, on purpose; the threads of its parent are none that a fork child could join.
WITHOUT_LEAKS = {"ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "report_thread_leaks=0"}
