"""Arrays of rows of different length: what the samples of a batch show.

Invariant: row i is values[offsets[i]:offsets[i + 1]]; nothing is copied to take it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["Ragged"]


class Ragged:
    """Rows of different length in one array, for example the boxes of each sample of a batch.

    Attributes:
        values: all rows one after another: an array, or another Ragged, for example the points of each polygon.
        offsets: where each row begins, and where the last ends: one more than there are rows.

    >>> import numpy
    >>> rows = Ragged(numpy.array([1.0, 2.0, 3.0]), numpy.array([0, 2, 2, 3]))
    >>> len(rows), rows[0].tolist(), rows[1].tolist(), rows[-1].tolist()
    (3, [1.0, 2.0], [], [3.0])
    """

    __slots__ = ("offsets", "values")

    def __init__(self, values: Any, offsets: Any) -> None:
        self.values = values
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int | slice) -> Any:
        """Row i; of a slice, these rows as a Ragged."""
        if isinstance(i, slice):
            low, high, step = i.indices(len(self))
            if step != 1:
                raise IndexError("a slice of a Ragged has no step")
            return Ragged(self.values, self.offsets[low : max(low, high) + 1])
        at = i + len(self) if i < 0 else i
        if not 0 <= at < len(self):
            raise IndexError(f"row {i} of a Ragged of {len(self)} rows")
        return self.values[int(self.offsets[at]) : int(self.offsets[at + 1])]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"millrace.Ragged({len(self)} rows of {len(self.values)} items)"
