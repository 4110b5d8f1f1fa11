"""A Python function on each sample, in threads, in order.

Invariant: where the loader is counts the batches handed out, not those whose samples are being mapped; an error of the
function leaves the pass at its batch.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ._arrays import encoded_bytes
from ._errors import MisuseError

if TYPE_CHECKING:
    from ._loader import Loader, _Epoch

__all__ = ["MapFeed", "collate"]


def _stack(values: Sequence[Any]) -> Any:
    import numpy

    if isinstance(values[0], (numpy.ndarray, numpy.generic, int, float, bool)):
        return numpy.stack(values) if isinstance(values[0], numpy.ndarray) else numpy.asarray(values)
    return list(values)


def collate(results: list[Any], array: str) -> Any:
    """A batch of what the function returned: by torch's default_collate, or with numpy, member by member."""
    if array == "torch":
        from torch.utils.data import default_collate

        return default_collate(results)
    first = results[0]
    if isinstance(first, dict):
        return {name: _stack([result[name] for result in results]) for name in first}
    if isinstance(first, tuple):
        return tuple(_stack(column) for column in zip(*results, strict=True))
    return _stack(results)


def _plain(value: Any) -> Any:
    """A number as Python's; arrays as they are."""
    return value.item() if getattr(value, "ndim", None) == 0 else value


class MapFeed:
    """Calls `function` with a dict of the loader's fields for each sample of a batch."""

    def __init__(self, loader: Loader, function: Callable[[Any], Any], threads: int, join: Callable[[list[Any]], Any] | None) -> None:
        if not callable(function):
            raise MisuseError(f"map: {function!r} cannot be called")
        if loader.array in ("jax", "raw"):
            raise MisuseError(f"map: array={loader.array!r}; a function gets samples as torch or numpy")
        self._loader = loader
        self._function = function
        self._threads = threads or len(os.sched_getaffinity(0))
        self._join = join
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0
        self._take = list(loader._take)
        if loader.output == "encoded" and "image" in loader.fields:
            self._take[loader.fields.index("image")] = encoded_bytes

    def __call__(self, epoch: _Epoch) -> Iterator[Any]:
        return _MapEpoch(self, epoch)

    def pool(self) -> ThreadPoolExecutor:
        """The threads of this process: a child of fork has none of its parent's."""
        if self._pool is None or self._process != os.getpid():
            self._pool = ThreadPoolExecutor(self._threads, "millrace-map")
            self._process = os.getpid()
        return self._pool

    def close(self) -> None:
        """Calls that have not begun are not made any more."""
        if self._pool is not None and self._process == os.getpid():
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = None

    def samples(self, batch: Any) -> list[dict[str, Any]]:
        """The fields of each sample of a batch."""
        columns = [take(batch) for take in self._take]
        if self._loader._views and "image" in self._loader.fields:
            at = self._loader.fields.index("image")
            columns[at] = list(zip(*columns[at]))
        return [dict(zip(self._loader.fields, map(_plain, values))) for values in zip(*columns)] if batch.count else []

    def call(self, sample: dict[str, Any], number: int) -> Any:
        """The function's result; its error says which sample it was."""
        try:
            return self._function(sample)
        except Exception as error:
            error.add_note(f"millrace: map was called with sample {number} of {self._loader.dataset!r}")
            raise

    def join(self, results: list[Any]) -> Any:
        """The batch."""
        value = self._join(results) if self._join is not None else collate(results, self._loader.array) if results else []
        transform = self._loader._transform
        return value if transform is None else transform(value)


class _MapEpoch(Iterator[Any]):
    """One pass; as many batches are ahead as the loader prefetches."""

    def __init__(self, feed: MapFeed, epoch: _Epoch) -> None:
        self._feed = feed
        self._epoch = epoch
        self._ahead: deque[tuple[list[Future[Any]], tuple[int, int]]] = deque()
        self._process = 0  # that this pass was begun in
        self._ended = False

    def __next__(self) -> Any:
        loader = self._feed._loader
        with loader._lock:
            if self._process not in (0, os.getpid()):
                raise MisuseError("this pass was begun in another process; begin one here")
            if self._epoch._pass != loader._pass:
                raise MisuseError("a later pass over this loader has begun; use a loader for each")
            while not self._ended and len(self._ahead) <= loader._options["prefetch"]:
                self._begin()
            if not self._ahead:
                raise StopIteration
            futures, after = self._ahead[0]
            try:
                results = [future.result() for future in futures]
            except CancelledError:
                raise MisuseError("the loader is closed") from None
            value = self._feed.join(results)
            self._ahead.popleft()
            loader._at = after
            return value

    def _begin(self) -> None:
        try:
            batch, after = self._epoch.fetch()
        except StopIteration:
            self._ended = True
            return
        self._process = os.getpid()
        samples, numbers = self._feed.samples(batch), batch.column("sample")
        try:
            futures = [self._feed.pool().submit(self._feed.call, *pair) for pair in zip(samples, numbers)]
        except RuntimeError:  # closed by another thread
            raise MisuseError("the loader is closed") from None
        self._ahead.append((futures, after))

    def __length_hint__(self) -> int:
        return self._epoch.__length_hint__() + len(self._ahead)
