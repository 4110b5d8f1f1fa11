"""Batches on a CUDA device of torch, copied beside the computation.

Invariant: a batch's memory is held until the event recorded after its copy has been reached; at most two batches are held,
so that the loader never has to give registered memory away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ._errors import MisuseError, SystemFailure
from ._ragged import Ragged

if TYPE_CHECKING:
    from ._loader import Loader, _Epoch

__all__ = ["DeviceFeed"]

_HELD = 2
_Ready = tuple[Any, Any, tuple[int, int]]  # a value, the event after its copy, where the loader is after it


class DeviceFeed:
    """Copies batches to `device` on a stream of its own, one batch ahead of the caller.

    The loader's memory is registered with CUDA once per slab (pinned), so that copies run by DMA.
    """

    def __init__(self, device: Any, loader: Loader) -> None:
        import torch

        self._device = torch.device(device)
        self._loader = loader
        self._registered: dict[int, int] = {}
        self._handle: Any = None
        if loader.array != "torch" or loader.output == "encoded":
            raise MisuseError("device: needs array='torch' and decoded output")
        if self._device.type != "cuda":
            raise MisuseError(f"device: {device} is not a CUDA device")

    def __call__(self, epoch: _Epoch) -> Iterator[Any]:
        return _DeviceEpoch(self, epoch)

    def _copy(self, value: Any) -> Any:
        import torch

        if isinstance(value, torch.Tensor):
            return value.to(self._device, non_blocking=True)
        if isinstance(value, Ragged):
            return Ragged(self._copy(value.values), self._copy(value.offsets))
        if isinstance(value, dict):
            return {name: self._copy(item) for name, item in value.items()}
        if isinstance(value, (tuple, list)):
            return type(value)(self._copy(item) for item in value)
        return value

    def _deliver(self, ready: _Ready, stream: Any) -> Any:
        import torch

        value, event, self._loader._at = ready
        current = torch.cuda.current_stream(self._device)
        current.wait_event(event)
        items = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else [value]
        for tensor in _tensors(items):
            tensor.record_stream(current)
        return value

    def _register(self, batch: Any) -> None:
        import torch

        if batch.nbytes == 0 or self._registered.get(batch.address, 0) >= batch.nbytes:
            return
        code = torch.cuda.cudart().cudaHostRegister(batch.address, batch.nbytes, 0)
        if int(code) != 0:
            raise SystemFailure(f"device: memory for batches cannot be pinned (CUDA error {int(code)})")
        self._registered[batch.address] = batch.nbytes

    def __del__(self) -> None:
        if not getattr(self, "_registered", None):
            return
        import torch

        for address in self._registered:
            torch.cuda.cudart().cudaHostUnregister(address)
        self._registered.clear()


def _tensors(items: Iterable[Any]) -> Iterator[Any]:
    """Also those of Ragged items."""
    import torch

    for item in items:
        if isinstance(item, Ragged):
            yield from _tensors([item.values, item.offsets])
        elif isinstance(item, torch.Tensor):
            yield item


class _DeviceEpoch(Iterator[Any]):
    """One pass over a loader whose batches are on the device. What next() raises leaves the pass where it was: a failure is
    raised again, and an interrupted next() can be repeated."""

    def __init__(self, feed: DeviceFeed, epoch: _Epoch) -> None:
        import torch

        self._feed = feed
        self._epoch = epoch
        self._stream = torch.cuda.Stream(feed._device)
        self._held: deque[tuple[Any, Any]] = deque()
        self._ready: _Ready | None = None

    def __next__(self) -> Any:
        with self._feed._loader._lock:
            if self._ready is None:
                self._ready = self._prepare()
            ahead = self._prepare() if self._ready is not None else None
            ready, self._ready = self._ready, ahead
            if ready is None:
                self._wait(0)
                raise StopIteration
            return self._feed._deliver(ready, self._stream)

    def _wait(self, most: int) -> None:
        """Until at most this many batches are held."""
        while len(self._held) > most:
            self._held.popleft()[0].synchronize()

    def _prepare(self) -> _Ready | None:
        """Begins to copy the next batch, which counts for state_dict() only once it is delivered. None: it was the last."""
        import torch

        self._wait(_HELD - 1)
        try:
            batch, after = self._epoch.fetch()
        except StopIteration:
            return None
        self._feed._handle = self._epoch._handle
        self._feed._register(batch)
        with torch.cuda.stream(self._stream):
            value = self._feed._copy(self._feed._loader._arrays(batch))
            event = torch.cuda.Event()
            event.record(self._stream)
        self._held.append((event, batch))
        return value, event, after
