"""A batch as arrays of torch, numpy or JAX, without a copy.

Invariant: every array keeps the batch's memory alive; only JAX, whose arrays cannot be written, may copy columns.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from typing import Any

from ._errors import MisuseError

__all__ = ["Field", "choose_array", "make_fields"]

Field = Callable[[Any], Any]

ARRAYS = ("torch", "numpy", "jax", "raw")


def choose_array(array: str | None) -> str:
    """`array`, or by what the caller uses: torch if imported, else JAX if imported, else numpy, which must be installed."""
    if array is not None:
        if array not in ARRAYS:
            raise MisuseError(f"array: {array!r} must be one of {', '.join(ARRAYS)}")
        return array
    for name in ("torch", "jax"):
        if name in sys.modules:
            return name
    if "numpy" not in sys.modules and importlib.util.find_spec("numpy") is None:
        raise MisuseError("array: neither numpy nor torch is installed; install one, or pass array='raw' for a Batch with the "
                          "buffer protocol and DLPack")
    return "numpy"


def _spans(batch: Any) -> list[memoryview]:
    slab = memoryview(batch)
    return [slab[at : at + length] for at, length in zip(batch.column("offset"), batch.column("length"))]


def _metas(batch: Any) -> list[Any]:
    return [json.loads(meta) for meta in batch.metas()]


def _for_torch(name: str, output: str) -> Field:
    import torch

    if name == "image" and output == "encoded":
        return lambda batch: [torch.frombuffer(span, dtype=torch.uint8) for span in _spans(batch)]
    from_dlpack = torch.from_dlpack  # of a capsule: without the questions that it asks of an object
    if name == "image":
        empty = getattr(torch, output)
        return lambda batch: (
            from_dlpack(batch.__dlpack__()) if batch.count else torch.empty(memoryview(batch).shape, dtype=empty)
        )
    return lambda batch: from_dlpack(batch.column_dlpack(name))


def _for_numpy(name: str, output: str) -> Field:
    import numpy

    if name == "image" and output == "encoded":
        return lambda batch: [numpy.frombuffer(span, dtype=numpy.uint8) for span in _spans(batch)]
    if name != "image":
        return lambda batch: numpy.asarray(batch.column(name))
    if output != "bfloat16":
        return numpy.asarray
    try:
        import ml_dtypes
    except ImportError:
        raise MisuseError("output bfloat16 with numpy needs the package ml_dtypes; use torch, JAX or raw") from None
    return lambda batch: numpy.asarray(batch).view(ml_dtypes.bfloat16)


def _for_jax(name: str, output: str) -> Field:
    import jax.numpy
    import numpy

    if name == "image" and output != "encoded":
        return lambda batch: jax.numpy.from_dlpack(batch)
    convert = _for_numpy(name, output)
    if name == "image":
        return convert
    kind = numpy.float32 if name == "weight" else numpy.int32
    return lambda batch: jax.numpy.asarray(convert(batch).astype(kind))


def _for_raw(name: str, output: str) -> Field:
    if name == "image":
        return _spans if output == "encoded" else lambda batch: batch
    return lambda batch: batch.column(name)


_MAKERS = {"torch": _for_torch, "numpy": _for_numpy, "jax": _for_jax, "raw": _for_raw}


def make_fields(fields: tuple[str, ...], output: str, array: str) -> list[Field]:
    """A function per field that takes it out of a batch: the images (one tensor, or for encoded output one uint8 array per
    image), the metas as dicts, or a column of numbers."""
    return [_metas if name == "meta" else _MAKERS[array](name, output) for name in fields]
