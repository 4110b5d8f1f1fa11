"""Several views of each sample: a loader in C for each, which differ in nothing else.

Invariant: the loaders go step by step together: what one reads, in this order, all read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import _millrace

__all__ = ["SeveralBatch", "SeveralLoader"]


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
