# SPDX-License-Identifier: Apache-2.0
"""The exceptions of HBase's Thrift interface, which HappyBase's programs catch: TException and its children.

If thriftpy2 is installed, its TException is their base, because programs may have imported it from there.
"""
from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Optional, Type

from .. import errors

RETRIES_EXHAUSTED = "org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException"

if TYPE_CHECKING:
    class TException(Exception):
        """The base of all."""
else:
    try:
        from thriftpy2.thrift import TException
    except ImportError:
        class TException(Exception):
            """The base of all."""

if TYPE_CHECKING:
    class TTransportException(TException):
        """There is no connection."""
else:
    try:
        from thriftpy2.transport import TTransportException as _Transport
    except ImportError:
        _Transport = TException

    class TTransportException(_Transport):
        """There is no connection."""

        def __init__(self, message: str) -> None:
            Exception.__init__(self, message)
            self.message = message

        def __str__(self) -> str:
            return self.message


class _Answer(TException):
    """An error that the database returned."""

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class IOError(_Answer):
    """HBase failed: the message begins with its exception's class."""

    def __init__(self, message: str, canRetry: bool = False) -> None:
        super().__init__(message)
        self.canRetry = canRetry


class IllegalArgument(_Answer):
    """An argument is wrong."""


class AlreadyExists(_Answer):
    """The table exists."""


class answers:  # pylint: disable=invalid-name
    """with answers(): converts exceptions of librorqual to those that HBase's Thrift server would return."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if isinstance(error, errors.Error):
            raise _answer_of(error) from error


def _answer_of(error: errors.Error) -> _Answer:
    if isinstance(error, errors.BatchError):
        return IOError(f"{RETRIES_EXHAUSTED}: {error.message}", True)
    if isinstance(error, errors.InvalidArgumentError):
        return IllegalArgument(f"java.lang.IllegalArgumentException: {error.message}")
    return IOError(f"{error.hbase_class}: {error.message}", error.retryable)
