"""Batches on a CUDA device of torch, copied beside the computation.

Invariant: a batch's memory is held until the event recorded after its copy has been reached; at most two batches are held,
so that the loader never has to give registered memory away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._errors import MisuseError, SystemFailure

if TYPE_CHECKING:
    from ._loader import Loader, _Epoch

__all__ = ["DeviceFeed"]

_HELD = 2


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
        import torch

        cuda = torch.cuda
        stream = cuda.Stream(self._device)
        held: deque[tuple[Any, Any]] = deque()
        ready: tuple[Any, Any, tuple[int, int]] | None = None
        self._handle = epoch._handle
        while True:
            while len(held) >= _HELD:
                held.popleft()[0].synchronize()
            taken = self._loader._at
            try:
                batch = epoch.fetch()
            except StopIteration:
                break
            after = self._loader._at
            self._loader._at = taken  # what is only prefetched does not count for state_dict()
            self._register(batch)
            with cuda.stream(stream):
                value = self._copy(self._loader._arrays(batch))
                event = cuda.Event()
                event.record(stream)
            held.append((event, batch))
            if ready is not None:
                yield self._deliver(ready, stream)
            ready = (value, event, after)
            del batch, value
        if ready is not None:
            yield self._deliver(ready, stream)
        while held:
            held.popleft()[0].synchronize()

    def _copy(self, value: Any) -> Any:
        import torch

        if isinstance(value, torch.Tensor):
            return value.to(self._device, non_blocking=True)
        if isinstance(value, dict):
            return {name: self._copy(item) for name, item in value.items()}
        if isinstance(value, (tuple, list)):
            return type(value)(self._copy(item) for item in value)
        return value

    def _deliver(self, ready: tuple[Any, Any, tuple[int, int]], stream: Any) -> Any:
        import torch

        value, event, self._loader._at = ready
        current = torch.cuda.current_stream(self._device)
        current.wait_event(event)
        items = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else [value]
        for item in items:
            if isinstance(item, torch.Tensor):
                item.record_stream(current)
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
