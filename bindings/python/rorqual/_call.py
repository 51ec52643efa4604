# SPDX-License-Identifier: Apache-2.0
"""The failure struct of every call, and the exception made from it."""
from __future__ import annotations

from typing import Any, Optional

from . import errors
from ._native import ffi, lib

NO_ACTION = 2 ** (8 * ffi.sizeof("size_t")) - 1
# pack.c sets the failure's size, and a failed call the other fields.
failure = ffi.new_allocator(should_clear_after_alloc=False)


def new_failure() -> Any:
    why = failure("rq_failure *")
    why.size = ffi.sizeof("rq_failure")
    return why


def text(chars: Any) -> str:
    found: bytes = ffi.string(chars)
    return found.decode(errors="replace")


def copied(given: Any) -> bytes:
    """The bytes of an rq_bytes."""
    found: bytes = ffi.buffer(ffi.cast("char *", given.data), given.len)[:] if given.len else b""
    return found


def error_name(code: int) -> str:
    return text(lib.rq_err_name(code))


def error_of(code: int, why: Any) -> errors.Error:
    action: Optional[int] = None if why.action == NO_ACTION else why.action
    return errors.make(code, error_name(code), text(why.hbase_class), text(why.message), why.retryable, action)


def check(code: int, why: Any) -> None:
    if code != 0:
        raise error_of(code, why)


class Answer:
    """The variables in which a call of pack.c returns its block."""

    __slots__ = ("why", "block", "size")

    def __init__(self) -> None:
        self.why = failure("rq_failure *")
        self.block = ffi.new("char **")
        self.size = ffi.new("size_t *")

    def take(self) -> bytes:
        block = self.block[0]
        data: bytes = ffi.buffer(block, self.size[0])[:]
        lib.rqpy_free(block)
        return data

    def check(self, code: int) -> None:
        if code != 0:
            raise error_of(code, self.why)
