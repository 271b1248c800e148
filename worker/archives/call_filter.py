"""Which system calls a process can make, by Linux's seccomp: none that a parser of archives has a use for.

Refused are sockets, signals and memory of other processes, processes of its own (they would outlive all
limits), programs (to a parser), other names for files and new privileges. A refused call fails as one without
permission does, so that a library which merely asks goes on.
"""

from __future__ import annotations

import ctypes
import platform
import struct

from worker.archives.landlock import LIBC, SET_NO_NEW_PRIVILEGES

SET_SECCOMP, FILTER = 22, 2
# By architecture: how the kernel names it to a filter, and which column below is its own.
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1), "arm64": (0xC00000B7, 1)}
# The other calling convention of x86_64 has numbers from here on.
X32 = 0x40000000
NONE = -1
SOCKETS = {
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    # It opens sockets by itself.
    "io_uring_setup": (425, 425),
}
OTHER_PROCESSES = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "setpriority": (141, 140),
}
# What lies in the kernel: other programs keep their windows there, and it is nobody's when its maker ends.
SHARED = {
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "mq_open": (240, 180),
}
FILES = {
    "chmod": (90, NONE),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, NONE),
    "fchown": (93, 55),
    "lchown": (94, NONE),
    "fchownat": (260, 54),
    "utime": (132, NONE),
    "utimes": (235, NONE),
    "futimesat": (261, NONE),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
}
PRIVILEGES = {
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "move_mount": (429, 429),
    "chroot": (161, 51),
    "pivot_root": (155, 41),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "personality": (135, 92),
}
PROGRAMS = {"execve": (59, 221), "execveat": (322, 281)}
FORKS = {"fork": (57, NONE), "vfork": (58, NONE)}
# Threads pass, which end with their process. The later call hides its flags from filters: a library that is
# told that there is none takes the other.
CLONE, CLONE3, THREAD = (56, 220), (435, 435), 0x10000
# Types into the terminal, and steers the console.
IOCTL, TERMINAL_REQUESTS = (16, 29), (0x5412, 0x541C)
# Of another process than one's own.
PRLIMIT = (302, 261)

_LOAD, _EQUAL, _AT_LEAST, _HAS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE, _FIRST, _SECOND = 0, 4, 16, 24
_ALLOW, _REFUSE, _UNKNOWN = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38  # EPERM, ENOSYS


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def refuse_calls(*, programs: bool, processes: bool) -> bool:
    """Give these calls up, for good and for all that is started; False where nothing keeps that.

    ``programs`` leaves the right to become one, ``processes`` that to have another process.
    """
    machine = MACHINES.get(platform.machine())
    if LIBC is None or machine is None:
        return False
    code = _filter(*machine, programs=programs, processes=processes)
    LIBC.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    program = _Program(len(code) // 8, code)
    return bool(LIBC.prctl(SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0) == 0)


def _filter(machine: int, column: int, *, programs: bool, processes: bool) -> bytes:
    """The instructions: each refusal returns at once, so that no jump is longer than a step or two."""
    tables = [SOCKETS, OTHER_PROCESSES, SHARED, FILES, PRIVILEGES]
    tables += [] if programs else [PROGRAMS]
    tables += [] if processes else [FORKS]
    numbers = [numbers[column] for table in tables for numbers in table.values() if numbers[column] != NONE]
    steps = [
        _step(_LOAD, _MACHINE), _step(_EQUAL, machine, 1, 0), _step(_RETURN, _REFUSE),
        _step(_LOAD, _NUMBER), _step(_AT_LEAST, X32, 0, 1), _step(_RETURN, _REFUSE),
    ]  # fmt: skip
    for number in numbers:
        steps += [_step(_EQUAL, number, 0, 1), _step(_RETURN, _REFUSE)]
    if not processes:
        steps += [
            _step(_EQUAL, CLONE3[column], 0, 1), _step(_RETURN, _UNKNOWN),
            _step(_EQUAL, CLONE[column], 0, 4), _step(_LOAD, _FIRST),
            _step(_HAS, THREAD, 1, 0), _step(_RETURN, _REFUSE), _step(_RETURN, _ALLOW),
        ]  # fmt: skip
    one, other = TERMINAL_REQUESTS
    steps += [
        _step(_EQUAL, IOCTL[column], 0, 5), _step(_LOAD, _SECOND),
        _step(_EQUAL, one, 1, 0), _step(_EQUAL, other, 0, 1), _step(_RETURN, _REFUSE), _step(_RETURN, _ALLOW),
        _step(_EQUAL, PRLIMIT[column], 0, 3), _step(_LOAD, _FIRST),
        _step(_EQUAL, 0, 1, 0), _step(_RETURN, _REFUSE), _step(_RETURN, _ALLOW),
    ]  # fmt: skip
    return b"".join(steps)


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)
