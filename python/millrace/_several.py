"""Several views, a loader in C for each: all of them of every sample, or each sample by the one that suits it.

Invariant: which view of which samples comes when depends on the seed and the epoch alone, not on the ranks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _millrace

if TYPE_CHECKING:
    from ._dataset import Split
    from ._views import View

__all__ = ["BucketLoader", "SeveralBatch", "SeveralLoader", "divide"]

# ---- all views of every sample -------------------------------------------------------------------------------------


class SeveralBatch:
    """The batches of one step, by view; all but the pixels is that of the first."""

    def __init__(self, views: list[_millrace.Batch]) -> None:
        self.views = views

    def __getattr__(self, name: str) -> Any:
        return getattr(self.views[0], name)


class SeveralLoader:
    """As _millrace.Loader, of SeveralBatch."""

    def __init__(self, handle: _millrace.Dataset, split: str, options: Mapping[str, Any], views: Sequence[Mapping[str, Any]]) -> None:
        common = {**options, "threads": options["threads"] and max(1, options["threads"] // len(views))}
        pixels = {"with_meta": False, "with_objects": False, "with_masks": False}  # those of the first view are enough
        self._loaders = [
            _millrace.Loader(handle, split, {**common, **(pixels if i else {}), **view, "view": i}) for i, view in enumerate(views)
        ]

    def __next__(self) -> SeveralBatch:
        return SeveralBatch([next(loader) for loader in self._loaders])

    def steps(self) -> int:
        return self._loaders[0].steps()

    def cursor(self) -> tuple[int, int]:
        return self._loaders[0].cursor()

    def seek(self, epoch: int, position: int) -> None:
        for loader in self._loaders:
            loader.seek(epoch, position)

    def stats(self) -> dict[str, float]:
        """Batches and samples of one view, times of all."""
        all_of_them = [loader.stats() for loader in self._loaders]
        summed = ("waited", "reading", "decoding")
        return {name: sum(one[name] for one in all_of_them) if name in summed else all_of_them[0][name] for name in all_of_them[0]}

    def close(self) -> None:
        for loader in self._loaders:
            loader.close()


# ---- each sample by the view whose ratio is nearest ----------------------------------------------------------------


def _ratio(view: View) -> float:
    """Width to height."""
    return 1.0 if isinstance(view.size, int) else view.size[1] / view.size[0]


def divide(split: Split, items: bytes | None, views: Sequence[View]) -> list[bytes]:
    """The sample numbers of each view, as native uint64, in the order of `items` (None: all of the dataset's split): a sample
    goes to the view whose ratio is nearest to its own by quotient, the first of equals. Divisions alone, so that every
    processor gives the same."""
    import numpy

    whole = split.dataset[split.name]
    numbers = numpy.arange(len(whole), dtype="uint64") if items is None else numpy.frombuffer(items, "uint64")
    ratios = {}
    for turned in {view.apply_orientation for view in views}:
        sizes = whole.sizes(apply_orientation=turned)[numbers].astype("float64")
        ratios[turned] = sizes[:, 0] / sizes[:, 1]
    quotients = [ratios[view.apply_orientation] / _ratio(view) for view in views]
    nearest = numpy.argmin([numpy.maximum(quotient, 1.0 / quotient) for quotient in quotients], axis=0)
    return [numbers[nearest == i].tobytes() for i in range(len(views))]


class BucketLoader:
    """As _millrace.Loader; a batch is of one view."""

    def __init__(
        self, handle: _millrace.Dataset, split: str, options: Mapping[str, Any], views: Sequence[View], parts: Sequence[bytes]
    ) -> None:
        self._seed = options["seed"]
        self._shuffle = options["shuffle"]
        self._global_batch = options["global_batch"]
        self._loaders = [
            _millrace.Loader(handle, split, {**options, **view._options(), "items": part, "view": i})
            for i, (view, part) in enumerate(zip(views, parts))
            if part
        ]
        self._turns: list[int] = []  # of the epoch: which loader's batch each step has
        self._epoch = self._step = 0
        self._begin(0)

    def _begin(self, epoch: int) -> None:
        self._turns = [i for i, loader in enumerate(self._loaders) for _ in range(loader.steps())]
        self._epoch, self._step = epoch, 0
        if self._shuffle != 1:  # the dataset's order, one view after the other
            self._turns = [i for _, i in sorted((self._key(n), i) for n, i in enumerate(self._turns))]

    def _key(self, step: int) -> bytes:
        return hashlib.blake2b(f"millrace.buckets {self._seed} {self._epoch} {step}".encode(), digest_size=16).digest()

    def __next__(self) -> _millrace.Batch:
        batch = next(self._loaders[self._turns[self._step]])
        self._step += 1
        if self._step == len(self._turns):
            self._begin(self._epoch + 1)
        return batch

    def steps(self) -> int:
        return sum(loader.steps() for loader in self._loaders)

    def cursor(self) -> tuple[int, int]:
        return self._epoch, self._step * self._global_batch

    def seek(self, epoch: int, position: int) -> None:
        self._begin(epoch)
        self._step = position // self._global_batch
        for i, loader in enumerate(self._loaders):
            done = self._turns[: self._step].count(i)
            loader.seek(*((epoch, done * self._global_batch) if done < loader.steps() else (epoch + 1, 0)))

    def stats(self) -> dict[str, float]:
        """Of all views together."""
        parts = [loader.stats() for loader in self._loaders]
        return {name: sum(part[name] for part in parts) for name in parts[0]}

    def close(self) -> None:
        for loader in self._loaders:
            loader.close()
