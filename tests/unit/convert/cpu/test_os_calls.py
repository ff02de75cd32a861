"""Calls of the C library: groups, errors, bytes, files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.unit.convert.cpu.spools import DATA, FRAMES, MAIN, OPEN, READ, SEM_WAIT, call, report
from warplens.convert.cpu import os_words


def test_os_calls_have_target_result_and_bytes(tmp_path: Path) -> None:
    rows = [
        call(1_000, 2_000, READ, fd=3, result=50, object=4_096, text=DATA, flags=1, stack=2),
        call(1_500, 1_600, SEM_WAIT, result=-1, domain=4, object=0x7F00, tid=11),
        call(2_000, 2_100, READ, fd=4, result=-1, domain=11, object=10, flags=1),
        call(2_200, 2_300, OPEN, result=3, object=0o2000101, text=DATA, flags=1),
        call(2_400, 2_500, 99),
    ]
    found = report(tmp_path, {"os_call": rows, "cpu_frame": FRAMES})
    assert found.columns(
        "osrt", "id", "name", "group", "result", "error", "fd", "target", "bytes", "object", "stack"
    ) == [
        (0, "read", "file", 50, None, 3, "/data/a", 50, None, 2),
        (1, "sem_wait", "lock", -1, "EINTR", None, None, None, 0x7F00, None),
        (2, "read", "file", -1, "EAGAIN", 4, None, None, None, None),
        (3, "open", "file", 3, None, None, "/data/a", None, None, None),
        (4, "(unknown)", "other", 0, None, None, None, None, None, None),
    ]
    assert found.columns(
        "file_access", "id", "start", "name", "operation", "path", "bytes", "asked", "flags", "error"
    ) == [
        (0, 1_000, "read", "read", "/data/a", 50, 4_096, None, None),
        (1, 2_000, "read", "read", None, None, 10, None, "EAGAIN"),
        (2, 2_200, "open", "open", "/data/a", None, None, "O_WRONLY|O_CREAT|O_CLOEXEC", None),
    ]


def test_sockets_and_pipes_are_no_files_and_mappings_have_a_size(tmp_path: Path) -> None:
    texts = {
        1: "read",
        2: "socket 127.0.0.1:80 (TCP)",
        3: "pipe",
        4: "mmap64",
        5: "fread",
        6: "fopen64",
        7: "unix /run/x",
    }
    rows = [
        call(10, 20, 1, result=5, object=9, flags=1, text=2),
        call(20, 30, 1, result=5, object=9, flags=1, text=3),
        call(30, 40, 4, result=0x7F0000000000, object=8_192),
        call(40, 50, 4, result=-1, object=8_192, domain=12),
        call(50, 60, 5, result=5, object=9, flags=1),
        call(60, 70, 6, flags=1),
        call(70, 80, 1, result=5, text=7, flags=1),
    ]
    found = report(tmp_path, {"os_call": rows}, texts=texts)
    assert found.columns("osrt", "group", "bytes", "object") == [
        ("socket", 5, None),
        ("file", 5, None),
        ("memory", 8_192, None),
        ("memory", None, None),
        ("file", 5, None),
        ("file", None, None),
        ("socket", 5, None),
    ]
    assert found.columns("file_access", "start", "operation", "asked", "flags") == [
        (50, "read", 9, None),
        (60, "open", None, None),
    ]


def test_numbers_of_any_size(tmp_path: Path) -> None:
    rows = [
        call(
            1,
            2,
            READ,
            flags=1,
            object=(1 << 64) - 1,
            result=-(1 << 63),
            domain=0xFFFF,
            text=0xFFFFFFFF,
            stack=0xFFFFFFFF,
        )
    ]
    found = report(tmp_path, {"os_call": rows})
    assert found.columns("osrt", "result", "error", "target", "object", "stack") == [
        (-(1 << 63), "kind 65535", None, None, None)
    ]


@pytest.mark.skipif(os.name != "posix" or os.uname().sysname != "Linux", reason="numbers are Linux's")
def test_error_numbers_are_those_of_linux() -> None:
    other = (
        "EWOULDBLOCK",
        "EDEADLOCK",
        "ENOTSUP",
        "EFTYPE",
    )  # second names, and one of BSD that 3.14 gives a number
    theirs = {number: name for number, name in errno.errorcode.items() if name not in other}
    assert {number: os_words.ERRORS.get(number) for number in theirs} == theirs


@pytest.mark.skipif(
    os.name != "posix" or os.uname().machine != "x86_64", reason="numbers are those of x86_64"
)
def test_flags_of_open_are_those_of_linux() -> None:
    names = [
        "O_RDWR",
        "O_CREAT",
        "O_EXCL",
        "O_TRUNC",
        "O_APPEND",
        "O_NONBLOCK",
        "O_SYNC",
        "O_DIRECTORY",
        "O_CLOEXEC",
        "O_NOFOLLOW",
        "O_PATH",
    ]
    for name in names:
        flags = getattr(os, name)
        assert name in os_words.open_flags(flags).split("|")
    assert os_words.open_flags(os.O_RDONLY) == "O_RDONLY"
    assert os_words.open_flags(os.O_TMPFILE | os.O_RDWR) == "O_RDWR|O_TMPFILE"
    assert os_words.open_flags(1 << 31) == "O_RDONLY|0o20000000000"


@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("wait for events", "poll ppoll epoll_wait epoll_pwait2 select pselect"),
        ("sleep", "sleep usleep nanosleep clock_nanosleep"),
        (
            "lock",
            "pthread_mutex_lock pthread_cond_clockwait sem_wait pthread_rwlock_rdlock pthread_barrier_wait",
        ),
        (
            "process",
            "fork vfork execve posix_spawn waitpid pthread_create pthread_join system popen sched_yield",
        ),
        ("memory", "mmap mmap64 munmap mremap mprotect madvise brk msync"),
        ("signal", "kill sigwait sigaction pthread_kill sigsuspend"),
        ("socket", "accept4 bind connect recv recvfrom recvmsg send sendto sendmsg sendmmsg shutdown socket"),
        (
            "file",
            "read pread64 readv preadv2 write writev pwrite64 open open64 openat close fsync fdatasync ioctl sendfile64 fopen fread",
        ),
        ("other", "frobnicate bread"),
    ],
)
def test_groups(group: str, names: str) -> None:
    assert {name: os_words.group(name) for name in names.split()} == dict.fromkeys(names.split(), group)


@pytest.mark.parametrize(
    ("operation", "names"),
    [
        ("open", "open open64 openat openat64 creat fopen64"),
        ("close", "close fclose closedir"),
        ("read", "read pread pread64 readv preadv preadv2 preadv64v2 fread getdents64"),
        ("write", "write pwrite64 writev pwritev2 fwrite sendfile copy_file_range"),
        ("sync", "fsync fdatasync sync syncfs sync_file_range fflush"),
        ("seek", "lseek lseek64 fseek"),
        ("other", "ioctl flock stat poll"),
    ],
)
def test_operations(operation: str, names: str) -> None:
    assert {name: os_words.operation(name) for name in names.split()} == dict.fromkeys(
        names.split(), operation
    )


def test_only_what_moves_bytes_has_bytes(tmp_path: Path) -> None:
    rows = [call(10, 20, MAIN, result=7, flags=1)]
    found = report(tmp_path, {"os_call": rows})
    assert found.columns("osrt", "bytes") == [(None,)]
    assert found.columns("file_access", "operation", "bytes", "asked", "flags") == [
        ("other", None, None, None)
    ]
