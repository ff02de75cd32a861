"""torture.py TRUTH FLAGS MODE RANGES COUNT: what torture.c does, from Python: threads, forks, every way of multiprocessing."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from typing import Any

from warplens import nvtx

RANGE, HELLO, GOODBYE = 1, 2, 3
RECORD = struct.Struct("<IIQQQQQIIQ")
stopped = False


class Log:
    """The truth: a record of 64 bytes per closed range, appended after its pop returned."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def tell(self, kind: int, thread: int, number: int, *times: int) -> None:
        t0, t1, t2, t3 = times or (0, 0, 0, 0)
        os.write(
            self.fd, RECORD.pack(os.getpid(), thread, number, t0, t1, t2, t3, kind, 0, time.monotonic_ns())
        )

    def hello(self, first: bool = False) -> None:
        self.tell(HELLO, 0, int(first))

    def work(self, thread: int, pairs: int, pause: bool) -> None:
        clock, name = time.monotonic_ns, f"t{thread}"
        for i in range(pairs):
            if stopped:
                return
            a0 = clock()
            with nvtx.annotate(name, payload=2 * i):
                a1 = b0 = clock()
                with nvtx.annotate(name, payload=2 * i + 1):
                    b1 = b2 = clock()
                self.tell(RANGE, thread, 2 * i + 1, b0, b1, b2, clock())
                a2 = clock()
            self.tell(RANGE, thread, 2 * i, a0, a1, a2, clock())
            if pause:
                time.sleep(0.00005)

    async def task(self, thread: int, pairs: int) -> None:
        clock, name = time.monotonic_ns, f"t{thread}"
        for i in range(pairs):
            if stopped:
                return
            t0 = clock()
            with nvtx.annotate(name, payload=i):
                t1 = clock()
                await asyncio.sleep(0)
                t2 = clock()
            self.tell(RANGE, thread, i, t0, t1, t2, clock())


def child(path: str, ranges: int, pause: bool) -> None:
    """What a process of multiprocessing does."""
    log = Log(path)
    log.hello()
    log.work(1, ranges, pause)


def fork(log: Log, count: int, ranges: int, pause: bool) -> None:
    children = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            try:
                log.hello()
                log.work(1, ranges, pause)
            finally:
                os._exit(0)
        children.append(pid)
    log.work(2, ranges, pause)
    for pid in children:
        os.waitpid(pid, 0)


def daemon(log: Log, ranges: int, pause: bool) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                log.hello()
                log.work(1, ranges, pause)
        finally:
            os._exit(0)
    log.work(2, ranges // 4 + 1, pause)
    os.waitpid(pid, 0)


def processes(kind: str, log: Log, count: int, ranges: int, pause: bool) -> None:
    context: Any = multiprocessing.get_context(kind)
    started = [context.Process(target=child, args=(log.path, ranges, pause)) for _ in range(count)]
    for process in started:
        process.start()
    log.work(2, ranges, pause)
    for process in started:
        process.join()


def threads(log: Log, count: int, ranges: int, pause: bool) -> None:
    started = [
        threading.Thread(target=log.work, args=(1000 + number, ranges, pause)) for number in range(count)
    ]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def tasks(log: Log, count: int, ranges: int) -> None:
    async def everything() -> None:
        await asyncio.gather(*(log.task(1000 + number, ranges) for number in range(count)))

    asyncio.run(everything())


def stop(number: int, frame: object) -> None:
    global stopped
    stopped = True


def main() -> int:
    path, flags, mode, ranges, count = (
        sys.argv[1],
        sys.argv[2],
        sys.argv[3],
        int(sys.argv[4]),
        int(sys.argv[5]),
    )
    pause, first = "d" not in flags, "c" not in flags
    if "h" in flags:
        for stopping in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(stopping, stop)
    log = Log(path)
    if first:
        os.write(1, b"begin\n")
    log.hello(first)
    if mode == "work":
        log.work(3, ranges, pause)
    elif mode == "threads":
        threads(log, count, ranges, pause)
    elif mode == "tasks":
        tasks(log, count, ranges)
    elif mode == "fork":
        fork(log, count, ranges, pause)
    elif mode == "daemon":
        daemon(log, ranges, pause)
    elif mode == "subprocess":
        for number in range(count):
            subprocess.run(
                [sys.executable, __file__, path, flags + "c", "work", str(ranges), "1"], check=False
            )
            log.work(2000 + number, ranges, pause)
    else:
        processes(mode.removeprefix("mp-"), log, count, ranges, pause)
    code = 7 if stopped else 0
    if first:
        os.write(1, b"end %d\n" % code)
        log.tell(GOODBYE, 0, code)
    return code


if __name__ == "__main__":
    sys.exit(main())
