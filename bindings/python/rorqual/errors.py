# SPDX-License-Identifier: Apache-2.0
"""The exceptions. Each has the code and name of librorqual's error, HBase's class, and whether a later attempt may
succeed.

    Error
      InvalidArgumentError (ValueError)      a name, a number, a filter's text, a setting
      NotFoundError (LookupError)            TableNotFoundError, NamespaceNotFoundError, FamilyNotFoundError
      AlreadyExistsError                     TableExistsError, NamespaceExistsError
      TableStateError                        TableEnabledError, TableDisabledError
      RefusedError                           HBase's DoNotRetryIOException and similar exceptions
      StorageError                           LockedError, CorruptError
      UnavailableError                       BusyError: an overloaded or moving region or server
      RequestTimeoutError
      ForkedError                            the database was opened by the parent process
      ClosedError
      BatchError                             some of a batch's actions failed: `failures`
"""
from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Tuple, Type

__all__ = [
    "Error", "InvalidArgumentError", "NotFoundError", "TableNotFoundError", "NamespaceNotFoundError", "FamilyNotFoundError",
    "AlreadyExistsError", "TableExistsError", "NamespaceExistsError", "TableStateError", "TableEnabledError",
    "TableDisabledError", "RefusedError", "StorageError", "LockedError", "CorruptError", "UnavailableError", "BusyError",
    "RequestTimeoutError", "ForkedError", "ClosedError", "BatchError",
]


class Error(Exception):
    """A call of the library failed. str() is the message."""

    def __init__(self, message: str, *, code: int = 0, name: str = "", hbase_class: str = "", retryable: bool = False,
                 action: Optional[int] = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code                # the code in rorqual/errors.h
        self.name = name                # "RQ_E_TABLE_NOT_FOUND"
        self.hbase_class = hbase_class  # "org.apache.hadoop.hbase.TableNotFoundException"
        self.retryable = retryable      # the library has already retried the call until its timeout
        self.action = action            # the index of the action of a batch

    def __reduce__(self) -> Tuple[Any, ...]:
        return _unpickle, (type(self), self.message, self.__dict__)


def _unpickle(kind: Type[Error], message: str, state: Dict[str, Any]) -> Error:
    error = kind.__new__(kind)
    error.args = (message,)
    error.__dict__.update(state)
    return error


class InvalidArgumentError(Error, ValueError):
    pass


class NotFoundError(Error, LookupError):
    pass


class TableNotFoundError(NotFoundError):
    pass


class NamespaceNotFoundError(NotFoundError):
    pass


class FamilyNotFoundError(NotFoundError):
    pass


class AlreadyExistsError(Error):
    pass


class TableExistsError(AlreadyExistsError):
    pass


class NamespaceExistsError(AlreadyExistsError):
    pass


class TableStateError(Error):
    pass


class TableEnabledError(TableStateError):
    """HBase's TableNotDisabledException."""


class TableDisabledError(TableStateError):
    """HBase's TableNotEnabledException."""


class RefusedError(Error):
    pass


class StorageError(Error):
    pass


class LockedError(StorageError):
    """A process, possibly this one, has the folder open; the message names the process."""


class CorruptError(StorageError):
    pass


class UnavailableError(Error):
    pass


class BusyError(UnavailableError):
    pass


class RequestTimeoutError(Error):
    pass


class ForkedError(Error):
    pass


class ClosedError(Error):
    pass


class BatchError(Error):
    """Some actions of a batch failed, and the others were done. `failures` maps the index of an action to its error."""

    def __init__(self, message: str, failures: Mapping[int, Error]) -> None:
        first = failures[min(failures)]
        super().__init__(message, code=first.code, name=first.name, hbase_class=first.hbase_class, action=first.action,
                         retryable=all(failure.retryable for failure in failures.values()))
        self.failures = dict(failures)


CLASSES: Mapping[str, Type[Error]] = {
    "RQ_E_INVALID": InvalidArgumentError, "RQ_E_ILLEGAL_ARGUMENT": InvalidArgumentError, "RQ_E_CONFIG": InvalidArgumentError,
    "RQ_E_NULL_POINTER": InvalidArgumentError,
    "RQ_E_NOT_FOUND": NotFoundError, "RQ_E_TABLE_NOT_FOUND": TableNotFoundError, "RQ_E_UNKNOWN_REGION": NotFoundError,
    "RQ_E_NAMESPACE_NOT_FOUND": NamespaceNotFoundError, "RQ_E_NO_SUCH_FAMILY": FamilyNotFoundError,
    "RQ_E_EXISTS": AlreadyExistsError, "RQ_E_TABLE_EXISTS": TableExistsError, "RQ_E_NAMESPACE_EXISTS": NamespaceExistsError,
    "RQ_E_TABLE_NOT_ENABLED": TableDisabledError, "RQ_E_TABLE_NOT_DISABLED": TableEnabledError,
    "RQ_E_IO": StorageError, "RQ_E_NO_SPACE": StorageError, "RQ_E_PERMISSION": StorageError, "RQ_E_VERSION": StorageError,
    "RQ_E_LOCKED": LockedError, "RQ_E_CORRUPT": CorruptError,
    "RQ_E_TIMEOUT": RequestTimeoutError, "RQ_E_CALL_TIMEOUT": RequestTimeoutError,
    "RQ_E_ROW_LOCK_TIMEOUT": RequestTimeoutError,
    "RQ_E_REGION_TOO_BUSY": BusyError, "RQ_E_CALL_QUEUE_TOO_BIG": BusyError, "RQ_E_CALL_DROPPED": BusyError,
    "RQ_E_NO_MEMORY": BusyError,
    "RQ_E_FORKED": ForkedError, "RQ_E_CLOSED": ClosedError,
}


def make(code: int, name: str, hbase_class: str, message: str, retryable: bool, action: Optional[int] = None) -> Error:
    """The exception of an error code: by the table above, otherwise by whether a later attempt may succeed."""
    kind = CLASSES.get(name, UnavailableError if retryable else RefusedError)
    return kind(message, code=code, name=name, hbase_class=hbase_class, retryable=retryable, action=action)
