"""Which samples an epoch goes through: all, a list, a list for each epoch, or as often as weights say.

Invariant: it depends on the epoch alone, not on the rank, so that ranks agree, and a run that resumes gets the same list.
"""

from __future__ import annotations

import hashlib
import operator
from array import array as _array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ._errors import MisuseError

if TYPE_CHECKING:
    from ._dataset import Split

__all__ = ["Items", "choose_numbers", "pack_numbers"]


def pack_numbers(option: str, items: Any, samples: int) -> _array[int]:
    """Integers of at least 0; of a mask, the places that are True."""
    numbers = [] if isinstance(items, (str, bytes)) else list(items)
    if numbers and all(isinstance(i, bool) or type(i).__name__ in ("bool", "bool_") for i in numbers):
        if len(numbers) != samples:
            raise MisuseError(f"{option}: a mask of {len(numbers)} samples, and the split has {samples}")
        numbers = [at for at, chosen in enumerate(numbers) if chosen]
    try:
        if isinstance(items, (str, bytes)):
            raise TypeError
        return _array("Q", (operator.index(i) for i in numbers))
    except (OverflowError, TypeError, ValueError):
        raise MisuseError(f"{option}: sample numbers must be integers of at least 0, or a mask of bools") from None


def choose_numbers(option: str, places: Any, numbers: Sequence[int]) -> _array[int]:
    """The sample numbers at these places of a split."""
    if len(places) and max(places) >= len(numbers):
        raise MisuseError(f"{option}: no sample {max(places)}; the split has {len(numbers)}")
    return _array("Q", (numbers[int(at)] for at in places))


def _weights(given: Any, split: Split) -> Any:
    """One for each sample, float64."""
    import numpy

    if isinstance(given, str):
        return _class_weights(given, split)
    try:
        weights = numpy.asarray(given, dtype="float64")
    except (TypeError, ValueError):
        raise MisuseError("weights: must be a number for each sample, or 'class'") from None
    if weights.shape != (len(split),):
        raise MisuseError(f"weights: shape {weights.shape}; the split has {len(split)} samples, each of which has one")
    if not numpy.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise MisuseError("weights: must be finite and at least 0, and not all 0")
    return weights


def _class_weights(word: str, split: Split) -> Any:
    """Each class as often as the others."""
    import numpy

    if word != "class":
        raise MisuseError(f"weights: {word!r}; a number for each sample, or 'class'")
    labels = split.labels
    if not len(labels) or (labels < 0).any():
        raise MisuseError("weights: 'class' needs a label for each sample")
    return 1.0 / numpy.bincount(labels)[labels]


def _fraction(seed: int, epoch: int) -> float:
    """A number in [0, 1) of this epoch."""
    drawn = hashlib.blake2b(f"millrace.weights {seed} {epoch}".encode(), digest_size=8).digest()
    return (int.from_bytes(drawn, "little") >> 11) * 2.0**-53


def draw(weights: Any, size: int, fraction: float) -> Any:
    """`size` sample numbers, ascending: number i size * weight[i] / sum times, rounded down or up (systematic sampling)."""
    import numpy

    sums = numpy.cumsum(weights)
    ends = sums * (size / sums[-1])
    ends[sums == sums[-1]] = size
    counts = numpy.diff(numpy.floor(ends + fraction).astype("int64"), prepend=0)
    return numpy.repeat(numpy.arange(len(counts), dtype="uint64"), counts)


class Items:
    """The sample numbers of an epoch, in the dataset's split, as native uint64; a Split may be a selection of it."""

    def __init__(self, split: Split, items: Any, weights: Any, epoch_size: int | None, seed: int) -> None:
        if items is not None and weights is not None:
            raise MisuseError("items and weights: pass one of them; split.select() chooses samples that weights are of")
        if epoch_size is not None and weights is None:
            raise MisuseError("epoch_size: how many samples weights draw in an epoch; pass weights as well")
        self._split = split
        self._function: Callable[[int], Any] | None = items if callable(items) else None
        self._weights = None if weights is None else _weights(weights, split)
        self._size = len(split) if epoch_size is None else epoch_size
        self._seed = seed
        self._fixed = None if self.vary else self._pack(items)
        self._last: tuple[int, bytes] = (-1, b"")
        self._digest: tuple[bytes | None, str | None] = (None, None)  # of these items

    @property
    def vary(self) -> bool:
        """Does each epoch have a list of its own?"""
        return self._function is not None or self._weights is not None

    def of(self, epoch: int) -> bytes | None:
        """None: the whole split."""
        if not self.vary:
            return self._fixed
        if self._last[0] != epoch:
            if self._function is not None:
                packed = self._pack(self._function(epoch))
            else:
                packed = self._select(draw(self._weights, self._size, _fraction(self._seed, epoch)))
            self._last = (epoch, packed or b"")
        return self._last[1]

    def digest(self, epoch: int) -> str | None:
        """What a state has of them: a run with others does not continue where this one was."""
        packed = self.of(epoch)
        if packed is not self._digest[0]:
            self._digest = (packed, None if packed is None else hashlib.sha256(packed).hexdigest())
        return self._digest[1]

    def _pack(self, items: Any) -> bytes | None:
        selected = self._split._numbers
        if items is None:
            return None if selected is None else selected.tobytes()
        return self._select(pack_numbers("items", items, len(self._split)))

    def _select(self, places: Any) -> bytes:
        """The numbers of the split's places."""
        selected = self._split._numbers
        if selected is None:
            return bytes(places.tobytes())
        return choose_numbers("items", places, selected).tobytes()
