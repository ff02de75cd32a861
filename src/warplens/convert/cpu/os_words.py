"""Facts about the recorded functions of the C library.

Groups, operations on files, error numbers and flags of Linux.
"""

from __future__ import annotations

import re

# The first that fits counts. Names are matched whole. Not compiled here: few reports have calls, and all would pay for it.
_GROUPS = (
    (
        "wait for events",
        r"e?poll|p?poll|epoll_.*|p?select|pselect6|io_getevents|aio_suspend(64)?|io_uring_enter",
    ),
    ("sleep", r"(u|nano|clock_nano)?sleep|pause|alarm"),
    (
        "lock",
        r"pthread_(mutex|cond|rwlock|spin|barrier)_\w+|sem_\w+|sem(op|timedop)|futex|flockfile|ftrylockfile|mtx_\w+|cnd_\w+",
    ),
    (
        "process",
        r"v?fork|fork(pty)|exec\w+|posix_spawnp?|system|popen|pclose|wait|wait[34]|waitpid|waitid|clone[23]?|pthread_(create|\w*join\w*|cancel)|"
        r"thrd_\w+|prctl|ptrace|sched_yield|pthread_yield|unshare|process_vm_\w+|_exit|exit",
    ),
    (
        "memory",
        r"m(map|unmap|remap|protect|advise|sync|lock|unlock)\w*|munmap|s?brk|shm(at|ctl|dt|get)|move_pages|membarrier",
    ),
    ("signal", r"(t|tg|rt_)?(kill|sig)\w*|killpg|pthread_kill|pthread_sig\w+|raise"),
    (
        "socket",
        r"accept4?|bind|connect|listen|recv\w*|send(to|msg|mmsg)?|shutdown|socket(pair)?|getaddrinfo|gethostby\w+|getnameinfo|setsockopt|getsockopt",
    ),
    (
        "file",
        r"p?(read|write)v?2?(64)?(v64|v642)?|readv|writev|p(read|write)v2?(64)?(v2)?|open(at)?2?(64)?|creat(64)?|close(_range|from)?|f(data)?sync|"
        r"sync\w*|l?seek(64)?|lseek(64)?|f?truncate(64)?|(posix_)?fallocate(64)?|copy_file_range|sendfile(64)?|splice|tee|vmsplice|"
        r"[fl]?(x)?statx?(64|at|at64)?|f?statfs(64)?|unlink(at)?|rename(at2?)?|mk(dir|fifo|nod)(at)?|rmdir|(sym)?link(at)?|readlink(at)?|getdents(64)?|"
        r"readdir(64)?(_r)?|opendir|closedir|scandir(64)?|access|faccessat|flock|lockf(64)?|f?ch(mod|own)(at)?|ioctl|fcntl(64)?|dup[23]?|pipe2?|u?mount2?|"
        r"f(re)?open(64)?|fclose(all)?|fflush(_unlocked)?|f(read|write|gets|puts|printf)(_unlocked)?|get(delim|line)|aio_\w+|mq_\w+|msg\w+|fdopen|"
        r"utime\w*|futim\w+|getcwd|chdir|fchdir|realpath|glob(64)?|nftw(64)?|tmpfile(64)?|mkstemp\w*|mkdtemp|posix_fadvise(64)?|readahead|remove",
    ),
)
GROUPS = (*(group for group, _ in _GROUPS), "other")
OPERATIONS = ("open", "close", "read", "write", "sync", "seek")
_OPERATION = [
    ("open", r"open(at)?2?(64)?|creat(64)?|f(re|d)?open(64)?|opendir|tmpfile(64)?|mkstemp\w*"),
    ("close", r"f?close(all|dir|_range|from)?"),
    (
        "read",
        r"p?readv?2?(64)?(v2|v64|v64v2)?|fread(_unlocked)?|fgets(_unlocked)?|get(delim|line)|getdents(64)?|readdir(64)?(_r)?|readahead|recv\w*",
    ),
    (
        "write",
        r"p?writev?2?(64)?(v2|v64|v64v2)?|fwrite(_unlocked)?|fputs(_unlocked)?|sendfile(64)?|copy_file_range|splice|send\w*",
    ),
    ("sync", r"f(data)?sync|sync\w*|msync|fflush(_unlocked)?"),
    ("seek", r"[fl]seek(64|o|o64)?|rewind|f[gs]etpos(64)?"),
]
_OPEN = r"open(at)?2?(64)?"
_NO_FILES = ("pipe", "eventpoll", "eventfd", "timerfd", "signalfd", "inotify")
_MOVED = (
    r"(p|f)?(read|write)v?2?(64)?(v2|v64|v64v2|_unlocked)?|splice|tee|vmsplice|copy_file_range|sendfile(64)?|(recv|send)(from|to|msg)?|"
    r"mq_(timed)?receive|msgrcv|get(delim|line)|getdents(64)?|readlink(at)?"
)

_ERRORS = (
    "EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT ENOTBLK EBUSY EEXIST EXDEV ENODEV "
    "ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOLCK "
    "ENOSYS ENOTEMPTY ELOOP - ENOMSG EIDRM ECHRNG EL2NSYNC EL3HLT EL3RST ELNRNG EUNATCH ENOCSI EL2HLT EBADE EBADR EXFULL ENOANO EBADRQC "
    "EBADSLT - EBFONT ENOSTR ENODATA ETIME ENOSR ENONET ENOPKG EREMOTE ENOLINK EADV ESRMNT ECOMM EPROTO EMULTIHOP EDOTDOT EBADMSG "
    "EOVERFLOW ENOTUNIQ EBADFD EREMCHG ELIBACC ELIBBAD ELIBSCN ELIBMAX ELIBEXEC EILSEQ ERESTART ESTRPIPE EUSERS ENOTSOCK EDESTADDRREQ "
    "EMSGSIZE EPROTOTYPE ENOPROTOOPT EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP EPFNOSUPPORT EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL "
    "ENETDOWN ENETUNREACH ENETRESET ECONNABORTED ECONNRESET ENOBUFS EISCONN ENOTCONN ESHUTDOWN ETOOMANYREFS ETIMEDOUT ECONNREFUSED "
    "EHOSTDOWN EHOSTUNREACH EALREADY EINPROGRESS ESTALE EUCLEAN ENOTNAM ENAVAIL EISNAM EREMOTEIO EDQUOT ENOMEDIUM EMEDIUMTYPE ECANCELED "
    "ENOKEY EKEYEXPIRED EKEYREVOKED EKEYREJECTED EOWNERDEAD ENOTRECOVERABLE ERFKILL EHWPOISON"
)
ERRORS = {number: name for number, name in enumerate(_ERRORS.split(), 1) if name != "-"}

_ACCESS = ("O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE")
_FLAGS = (
    (0o4010000, "O_SYNC"),
    (0o20200000, "O_TMPFILE"),
    (0o100, "O_CREAT"),
    (0o200, "O_EXCL"),
    (0o400, "O_NOCTTY"),
    (0o1000, "O_TRUNC"),
    (0o2000, "O_APPEND"),
    (0o4000, "O_NONBLOCK"),
    (0o10000, "O_DSYNC"),
    (0o20000, "O_ASYNC"),
)
# These differ between architectures.
_MACHINE_FLAGS = {
    "x86_64": (
        (0o40000, "O_DIRECT"),
        (0o100000, "O_LARGEFILE"),
        (0o200000, "O_DIRECTORY"),
        (0o400000, "O_NOFOLLOW"),
    ),
    "aarch64": (
        (0o200000, "O_DIRECT"),
        (0o400000, "O_LARGEFILE"),
        (0o40000, "O_DIRECTORY"),
        (0o100000, "O_NOFOLLOW"),
    ),
}
_LATE_FLAGS = ((0o1000000, "O_NOATIME"), (0o2000000, "O_CLOEXEC"), (0o10000000, "O_PATH"))


def group(name: str | None) -> str:
    """Return the group of a function."""
    return next((group for group, pattern in _GROUPS if re.fullmatch(pattern, name or "")), "other")


def flags_asked(name: str | None) -> bool:
    """Say whether the argument of a function holds flags of open()."""
    return re.fullmatch(_OPEN, name or "") is not None


def on_socket(target: str | None) -> int:
    """Return 1 for known sockets, 2 for descriptors known to be no file for other reasons, else 0."""
    word = (target or "").partition(" ")[0]
    return (
        1
        if word in ("socket", "unix")
        else 2
        if target and not target.startswith("/") and word in _NO_FILES
        else 0
    )


def operation(name: str | None) -> str:
    """Return the operation of a function on a file."""
    return next(
        (operation for operation, pattern in _OPERATION if re.fullmatch(pattern, name or "")), "other"
    )


def moves(name: str | None) -> bool:
    """Return whether a function returns the number of bytes that it moved."""
    return re.fullmatch(_MOVED, name or "") is not None


def open_flags(flags: int, machine: str = "x86_64") -> str:
    """Return flags of open() as C programs write them."""
    words = [_ACCESS[flags & 3]]
    left = flags & ~3
    for value, name in (*_FLAGS, *_MACHINE_FLAGS.get(machine, _MACHINE_FLAGS["x86_64"]), *_LATE_FLAGS):
        if left & value == value:
            words.append(name)
            left &= ~value
    return "|".join([*words, *([f"{left:#o}"] if left else [])])
