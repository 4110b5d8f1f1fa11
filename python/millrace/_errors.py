"""The exceptions that millrace raises.

Invariant: the message is the library's own sentence, "WHERE: WHAT"; nothing is printed.
"""

from __future__ import annotations

import errno as _errno
import os
import re

__all__ = ["BadDataError", "BadSampleError", "Error", "MisuseError", "SystemFailure"]

_SAMPLE = re.compile(r"(?P<shard>[^:]+)\.mdb: sample (?P<sample>\d+)(?: \((?P<source>.*?)\))?: ")


class Error(Exception):
    """Anything that millrace raises.

    Attributes:
        status: the library's number, as in millrace.h (-1 to -4).
        where: the file or option that the message begins with; "" if it names none.

    >>> import millrace
    >>> try:
    ...     millrace.Dataset("/nowhere")
    ... except millrace.Error as error:
    ...     print(type(error).__name__, error.where)
    MisuseError /nowhere
    """

    status: int = 0

    @property
    def where(self) -> str:
        place, found, _ = str(self).partition(": ")
        return place if found else ""


class BadSampleError(Error):
    """One sample is damaged or cannot be decoded; the others may be good.

    Attributes:
        shard: the shard's name, without ending; "" if the message names none.
        sample: its number in the split, from 0; -1 if the message names none.
        source: the image's path in the source; "" if it cannot be read.
    """

    status = -1

    def _named(self, group: str) -> str:
        found = _SAMPLE.search(str(self))
        return (found.group(group) or "") if found else ""

    @property
    def shard(self) -> str:
        return os.path.basename(self._named("shard"))

    @property
    def sample(self) -> int:
        return int(self._named("sample") or -1)

    @property
    def source(self) -> str:
        return self._named("source")


class BadDataError(Error):
    """A file of the dataset, or the source of an ingest, is damaged or missing."""

    status = -2


class SystemFailure(Error, OSError):
    """The system failed: disk, memory, permissions. `errno` is the system's number where the message ends with its text."""

    status = -3


class MisuseError(Error, ValueError):
    """The call is wrong: nothing was done. The message says what to change."""

    status = -4


_CLASSES = {c.status: c for c in (BadSampleError, BadDataError, SystemFailure, MisuseError)}


def make(status: int, text: str) -> Error:
    """The exception for a status of the library and its message."""
    error: Error = _CLASSES.get(status, Error)(text)
    if isinstance(error, SystemFailure):
        error.errno = next((n for n in _errno.errorcode if text.endswith(": " + os.strerror(n))), None)
    return error


def from_exit_code(code: int, text: str) -> Error:
    """The exception for a failed run of the program (README, "Exit codes")."""
    return make({1: -2, 2: -4, 3: -3}.get(code, 0), text)
