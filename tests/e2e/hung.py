# SPDX-License-Identifier: Apache-2.0
"""Stops single threads of a process by ptrace while its other threads run, to simulate a server whose event loop hangs (SIGSTOP
would stop all threads). The process must be a child of this process, and all functions must be called on one thread.
"""
import ctypes
import os
import pathlib

SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000  # waitpid's __WALL: include threads

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.restype = ctypes.c_long
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, thread):
    if LIBC.ptrace(request, thread, None, None) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def threads(pid, name):
    """The ids of the process's threads with that name."""
    tasks = pathlib.Path(f"/proc/{pid}/task")
    return [int(task.name) for task in tasks.iterdir() if (task / "comm").read_text().strip() == name]


class Hung:
    """`with Hung(pid, 'rq-loop-0'):` stops the threads with that name."""

    def __init__(self, pid, *names):
        self.stopped = [thread for name in names for thread in threads(pid, name)]
        assert self.stopped, (pid, names)

    def __enter__(self):
        for thread in self.stopped:
            ptrace(SEIZE, thread)
            ptrace(INTERRUPT, thread)
            os.waitpid(thread, WALL)
        return self

    def __exit__(self, *_):
        for thread in self.stopped:
            try:
                ptrace(DETACH, thread)
            except ProcessLookupError:  # the process has ended
                os.waitpid(thread, WALL)
