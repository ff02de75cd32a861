"""A C program that calls every function that the larger stub wraps once, made from the stub's own table, each call in a child of its own.

It prints a line for each: the function, its result, errno and what it read; the same with the stub in it as without.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

NATIVE = Path(__file__).resolve().parents[3] / "native"

# What a parameter is given, by its name, where the function has no line of its own below. Relative paths: in a folder of its own.
BY_NAME = {
    "fd": "file_fd()",
    "path": '"data"',
    "file": "file_stream()",
    "at": "4",
    "its": "0",
    "size": "8",
    "room": "sizeof(g_room)",
    "count": "1",
    "flags": "0",
    "whence": "0",
    "mode": "0600",
    "until": "&g_past",
    "most": "&g_short",
    "time": "&g_short",
    "rest": "NULL",
    "clock": "CLOCK_MONOTONIC",
    "mask": "&g_none",
    "mutex": "&g_mutex",
    "lock": "&g_lock",
    "condition": "&g_condition",
    "semaphore": "semaphore()",
    "version": "1",
    "which": "-1",
}
PIPE = "full_pipe()"
PAIR = "full_pair()"
EVENT = "&(struct epoll_event){.events = EPOLLIN}"
POLL = "&(struct pollfd){.fd = full_pipe(), .events = POLLIN}"
SETS = "0, NULL, NULL, NULL"
NAMED = '"none/such"'
WITH_STAT_AT = 'AT_FDCWD, "data", (void *)g_room, 0'
CALLS = {
    "execve": f'{NAMED}, (char *[]){{"such", NULL}}, environ',
    "execvpe": '"no-such-program", (char *[]){"such", NULL}, environ',
    "fexecve": '-1, (char *[]){"such", NULL}, environ',
    "execveat": f'AT_FDCWD, {NAMED}, (char *[]){{"such", NULL}}, environ, 0',
    "posix_spawn": f'&(pid_t){{0}}, {NAMED}, NULL, NULL, (char *[]){{"such", NULL}}, environ',
    "posix_spawnp": '&(pid_t){0}, "no-such-program", NULL, NULL, (char *[]){"such", NULL}, environ',
    "wait": "NULL",
    "waitpid": "-1, NULL, 0",
    "wait3": "NULL, 0, NULL",
    "wait4": "-1, NULL, 0, NULL",
    "waitid": "P_ALL, 0, NULL, WEXITED",
    "_exit": "7",
    "quick_exit": "8",
    "prctl": "PR_GET_DUMPABLE, 0, 0, 0, 0",
    "system": '"exit 3"',
    "popen": '"exit 3", "r"',
    "readv": "file_fd(), &g_part, 1",
    "syncfs": "-1",
    "flock": "file_fd(), LOCK_SH",
    "lockf": "file_fd(), F_TLOCK, 4",
    "lockf64": "file_fd(), F_TLOCK, 4",
    "sync_file_range": "file_fd(), 0, 4, 0",
    "fallocate": "file_fd(), 0, 0, 200",
    "fallocate64": "file_fd(), 0, 0, 200",
    "posix_fallocate": "file_fd(), 0, -1",
    "posix_fallocate64": "file_fd(), 0, -1",
    "copy_file_range": "file_fd(), NULL, -1, NULL, 4, 0",
    "sendfile": "full_pipe() + 1, file_fd(), NULL, 4",
    "sendfile64": "full_pipe() + 1, file_fd(), NULL, 4",
    "splice": "full_pipe(), NULL, -1, NULL, 4, 0",
    "tee": "full_pipe(), full_pipe() + 1, 4, 0",
    "vmsplice": "full_pipe() + 1, &g_part, 1, 0",
    "getdents64": "file_fd(), g_room, 8",
    "close_range": "100, 200, 0",
    "closefrom": "3",
    "dup2": "file_fd(), 50",
    "dup3": "file_fd(), 50, 99",
    "fcntl": "file_fd(), F_GETFL",
    "fcntl64": "file_fd(), F_GETFL",
    "ioctl": "full_pipe(), FIONREAD, (int *)g_room",
    "pipe": "(int *)g_room",
    "pipe2": "(int *)g_room, O_CLOEXEC",
    "fstatat": WITH_STAT_AT,
    "fstatat64": WITH_STAT_AT,
    "__fxstatat": f"1, {WITH_STAT_AT}",
    "__fxstatat64": f"1, {WITH_STAT_AT}",
    "statx": 'AT_FDCWD, "data", 0, STATX_SIZE, (void *)g_room',
    "faccessat": 'AT_FDCWD, "none", 0, 0',
    "unlinkat": 'AT_FDCWD, "none", 0',
    "renameat": 'AT_FDCWD, "data", AT_FDCWD, "other"',
    "renameat2": 'AT_FDCWD, "data", AT_FDCWD, "other", 99',
    "readlink": '"link", g_room, sizeof(g_room)',
    "readlinkat": 'AT_FDCWD, "link", g_room, sizeof(g_room)',
    "__readlink_chk": '"link", g_room, 64, sizeof(g_room)',
    "mkdir": '"folder", 0700',
    "mkdirat": 'AT_FDCWD, "data", 0700',
    "mkfifo": '"fifo", 0600',
    "mkfifoat": 'AT_FDCWD, "data", 0600',
    "chdir": '"."',
    "chroot": NAMED,
    "open": '"new", O_RDWR | O_CREAT | O_EXCL, 0640',
    "open64": '"data", O_RDWR | O_CREAT | O_EXCL, 0640',
    "openat": 'AT_FDCWD, "data", O_RDONLY',
    "openat64": f"AT_FDCWD, {NAMED}, O_RDONLY",
    "__openat_2": 'AT_FDCWD, "data", O_RDONLY',
    "__openat64_2": 'AT_FDCWD, "data", O_RDONLY',
    "rename": '"data", "other"',
    "link": '"data", "other"',
    "symlink": '"data", "other"',
    "fread": "g_room, 1, 8, file_stream()",
    "fread_unlocked": "g_room, 1, 8, file_stream()",
    "__fread_chk": "g_room, sizeof(g_room), 1, 8, file_stream()",
    "fwrite": '"abc", 1, 3, file_stream()',
    "fwrite_unlocked": '"abc", 1, 3, file_stream()',
    "fgetws": "(wchar_t *)g_room, 8, file_stream()",
    "fputs": '"abc", file_stream()',
    "fputs_unlocked": '"abc", file_stream()',
    "fputws": 'L"abc", file_stream()',
    "getdelim": "&(char *){NULL}, &(size_t){0}, '5', file_stream()",
    "__getdelim": "&(char *){NULL}, &(size_t){0}, '5', file_stream()",
    "getline": "&(char *){NULL}, &(size_t){0}, file_stream()",
    "fcloseall": "",
    "fopen": '"data", "r+"',
    "fopen64": f'{NAMED}, "r"',
    "freopen": '"data", "r", file_stream()',
    "freopen64": f'{NAMED}, "r", file_stream()',
    "listen": "file_fd(), 1",
    "shutdown": f"{PAIR}, SHUT_WR",
    "recv": f"{PAIR}, g_room, 64, 0",
    "recvfrom": f"{PAIR}, g_room, 64, 0, NULL, NULL",
    "recvmsg": f"{PAIR}, &(struct msghdr){{.msg_iov = &g_part, .msg_iovlen = 1}}, 0",
    "recvmmsg": f"{PAIR}, &(struct mmsghdr){{.msg_hdr = {{.msg_iov = &g_part, .msg_iovlen = 1}}}}, 1, 0, NULL",
    "send": f"{PAIR}, g_room, 4, 0",
    "sendto": "file_fd(), g_room, 4, 0, NULL, 0",
    "sendmsg": f"{PAIR}, &(struct msghdr){{.msg_iov = &g_part, .msg_iovlen = 1}}, 0",
    "sendmmsg": f"{PAIR}, &(struct mmsghdr){{.msg_hdr = {{.msg_iov = &g_part, .msg_iovlen = 1}}}}, 1, 0",
    "__recv_chk": f"{PAIR}, g_room, 64, sizeof(g_room), 0",
    "__recvfrom_chk": f"{PAIR}, g_room, 64, sizeof(g_room), 0, NULL, NULL",
    "getaddrinfo": '"127.0.0.1", "99", NULL, (void *)g_room',
    "socket": "99, SOCK_STREAM, 0",
    "socketpair": "AF_UNIX, SOCK_STREAM, 0, (int *)g_room",
    "bind": "file_fd(), &g_address, sizeof(g_address)",
    "connect": "socket(AF_UNIX, SOCK_STREAM, 0), &g_address, sizeof(g_address)",
    "accept": "file_fd(), NULL, NULL",
    "accept4": "-1, NULL, NULL, 0",
    "poll": f"{POLL}, 1, 1",
    "ppoll": f"{POLL}, 1, &g_short, NULL",
    "__poll_chk": f"{POLL}, 1, 1, 64",
    "__ppoll_chk": f"{POLL}, 1, &g_short, NULL, 64",
    "select": f"{SETS}, &(struct timeval){{0, 1000}}",
    "pselect": f"{SETS}, &g_short, NULL",
    "epoll_wait": f"epoll_create1(0), {EVENT}, 1, 1",
    "epoll_pwait": f"epoll_create1(0), {EVENT}, 1, 1, NULL",
    "epoll_pwait2": f"epoll_create1(0), {EVENT}, 1, &g_short, NULL",
    "epoll_ctl": f"epoll_create1(0), EPOLL_CTL_ADD, file_fd(), {EVENT}",
    "clock_nanosleep": "99, 0, &g_short, NULL",
    "sleep": "0",
    "usleep": "1",
    "pause": "tick_tock()",
    "sigsuspend": "tick_tock() &g_none",
    "sigwait": "signal_pending(), (int *)g_room",
    "sigwaitinfo": "signal_pending(), NULL",
    "sigtimedwait": "&g_none, NULL, &g_short",
    "sigaction": "99, NULL, NULL",
    "alarm": "0",
    "aio_suspend": "NULL, 0, &g_short",
    "aio_suspend64": "NULL, 0, &g_short",
    "aio_fsync": "99, &(struct aiocb){.aio_fildes = -1}",
    "aio_fsync64": "99, &(struct aiocb64){.aio_fildes = -1}",
    "pthread_barrier_wait": "barrier()",
    "pthread_join": "ended_thread(), NULL",
    "pthread_timedjoin_np": "pthread_self(), NULL, &g_past",
    "pthread_clockjoin_np": "ended_thread(), NULL, CLOCK_MONOTONIC, &g_far",
    "pthread_spin_lock": "(pthread_spinlock_t *)&g_spin",
    "pthread_spin_trylock": "(pthread_spinlock_t *)&g_spin",
    "pthread_cond_wait": "woken(), &g_mutex",
    "pthread_cond_timedwait": "held(), &g_mutex, &g_past",
    "pthread_cond_clockwait": "held(), &g_mutex, CLOCK_MONOTONIC, &g_past",
    "kill": "getpid(), 0",
    "killpg": "getpgrp(), 0",
    "tgkill": "getpid(), getpid(), 0",
    "sigqueue": "getpid(), 0, (union sigval){0}",
    "pthread_kill": "pthread_self(), 0",
    "pthread_cancel": "pthread_self()",
    "pclose": 'popen("exit 3", "r")',
    "unshare": "0",
    "setns": "file_fd(), 0",
    "acct": NAMED,
    "mount": f'"none", {NAMED}, "tmpfs", 0, NULL',
    "umount": NAMED,
    "umount2": f"{NAMED}, 0",
    "swapon": f"{NAMED}, 0",
    "swapoff": NAMED,
    "reboot": "1",
    "pthread_create": "(pthread_t *)g_room, NULL, nothing, NULL",
    "fork": "",
    "forkpty": "(int *)g_room, NULL, NULL, NULL",
    "mmap": "NULL, 4096, PROT_READ, MAP_PRIVATE, file_fd(), 0",
    "mmap64": "NULL, 4096, PROT_READ, MAP_PRIVATE, -1, 0",
    "munmap": "page(), 4096",
    "mprotect": "page(), 4096, PROT_READ",
    "madvise": "page(), 4096, 999",
    "msync": "page() + 1, 4096, MS_SYNC",
    "mlock": "page(), 4096",
    "mlock2": "page(), 4096, 99",
    "mlockall": "99",
    "mremap": "page(), 4096, 4096, 0",
    "brk": "sbrk(0)",
    "process_vm_readv": "getpid(), &g_part, 1, &g_part, 1, 0",
    "process_vm_writev": "-1, &g_part, 1, &g_part, 1, 0",
    "shmat": "-1, NULL, 0",
    "shmctl": "-1, IPC_STAT, (void *)g_room",
    "shmdt": "NULL",
    "shmget": "0x7f3a9b11, 8, 0",
    "msgctl": "-1, IPC_STAT, (void *)g_room",
    "msgget": "0x7f3a9b11, 0",
    "msgrcv": "-1, g_room, 8, 0, IPC_NOWAIT",
    "msgsnd": "-1, g_room, 8, IPC_NOWAIT",
    "semget": "0x7f3a9b11, 1, 0",
    "semop": "-1, (struct sembuf *)g_room, 1",
    "semtimedop": "-1, (struct sembuf *)g_room, 1, &g_short",
    "semctl": "-1, 0, IPC_STAT",
    "mq_notify": "-1, NULL",
    "mq_receive": "-1, g_room, 8, NULL",
    "mq_timedreceive": "-1, g_room, 8, NULL, &g_past",
    "mq_send": "-1, g_room, 8, 0",
    "mq_timedsend": "-1, g_room, 8, 0, &g_past",
    "mq_open": '"/none-such", O_RDONLY',
}
# As root, vhangup takes the terminal away from whoever runs the tests; sync waits for all disks of the machine.
LEFT_OUT = {"vhangup", "sync"}
# What is passed on and not told of: what leads to another program or to the end, and what frees or never waits. And what is told of
# only where it had to wait.
NOT_TOLD = {
    "_exit",
    "quick_exit",
    "execve",
    "execvpe",
    "fexecve",
    "execveat",
    "prctl",
    "closefrom",
    "pthread_testcancel",
}
ONLY_WAITING = re.compile(r"pthread_(mutex|rwlock|spin)_.*lock|sem_\w*wait")


@dataclass(frozen=True)
class Wrapped:
    """A row of the table."""

    name: str
    result: str
    parameters: str

    def arguments(self) -> str:
        """Return what it is called with. KeyError for a parameter that nobody has thought of."""
        if self.name in CALLS:
            return CALLS[self.name]
        given = []
        for parameter in self.parameters.split(","):
            words = re.findall(r"\w+", parameter)
            if words in ([], ["void"]):
                continue
            name = words[-1]
            if name in ("to", "from") and "*" in parameter:
                given.append("&g_part" if "iovec" in parameter else "(void *)g_room")
            elif name == "to" and words[0] != "int":
                given.append("g_room")
            else:
                given.append(BY_NAME[name])
        return ", ".join(given)


def table() -> list[Wrapped]:
    """Return what is wrapped, as the compiler reads it."""
    asking = (
        '#define _GNU_SOURCE\n#include "preload/stub.h"\n'
        "#define ROW(result, name, parameters, ...) @@ name @ result @ parameters @@\nWRAPPED(ROW)\n"
    )
    words = ["gcc", "-E", "-P", "-DWARPLENS_OSRT", f"-I{NATIVE / 'include'}", f"-I{NATIVE}", "-"]
    found = subprocess.run(words, input=asking, capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"@@\s*(\w+) @ ([^@]*) @ \(((?:[^@])*)\)\s*@@", found)
    return [Wrapped(name, result.strip(), " ".join(parameters.split())) for name, result, parameters in rows]


def _call(one: Wrapped) -> str:
    arguments = one.arguments()
    before, _, arguments = arguments.rpartition("tick_tock()")
    begin = "tick_tock();" if before or "tick_tock()" in one.arguments() else ""
    call = f"{one.name}({arguments})"
    pointer = "*" in one.result
    if one.result == "void":
        body = f"{call}; long result = 0;"
    elif one.name in ("fork", "forkpty"):
        body = f"long result = {call}; if (result == 0) _exit(3); int status; waitpid((pid_t)result, &status, 0); result = status;"
    elif one.name in ("brk", "sbrk"):
        body = f"long result = {call};"
    elif pointer:
        body = f"void *its = (void *){call}; long result = its == NULL ? 0 : its == (void *)-1 ? -1 : 1;"
    else:
        body = f"long result = (long){call};"
    return f"static void call_{one.name}(void) {{ {begin} errno = 0; {body} tell(result, errno); }}"


def source() -> str:
    """Return the program."""
    chosen = [one for one in table() if one.name not in LEFT_OUT]
    calls = "\n".join(map(_call, chosen))
    declared = "\n".join(
        f"{one.result} {one.name}({one.parameters});" for one in chosen if one.name.startswith("__")
    )
    rows = ",\n".join(f'  {{"{one.name}", call_{one.name}}}' for one in chosen)
    text = (Path(__file__).parents[2] / "targets" / "processes" / "wrapper_calls.c.in").read_text(
        encoding="utf-8"
    )
    return text.replace("@DECLARED@", declared).replace("@CALLS@", calls).replace("@ROWS@", rows)
