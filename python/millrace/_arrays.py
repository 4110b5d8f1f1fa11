"""A batch as arrays of torch, numpy or JAX, without a copy.

Invariant: every array keeps the batch's memory alive; only JAX, whose arrays cannot be written, may copy columns.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from typing import Any

from ._errors import MisuseError

__all__ = ["choose_array", "convert_columns", "convert_image"]

ARRAYS = ("torch", "numpy", "jax", "raw")


def choose_array(array: str | None) -> str:
    """`array`, or by what the caller uses: torch if imported, else JAX if imported, else numpy if installed, else raw."""
    if array is not None:
        if array not in ARRAYS:
            raise MisuseError(f"array: {array!r} is none of {', '.join(ARRAYS)}")
        return array
    for name in ("torch", "jax"):
        if name in sys.modules:
            return name
    return "numpy" if "numpy" in sys.modules or importlib.util.find_spec("numpy") else "raw"


def _spans(batch: Any) -> list[memoryview]:
    slab = memoryview(batch)
    return [slab[at : at + length] for at, length in zip(batch.column("offset"), batch.column("length"))]


def _split_slab(batch: Any, array: str) -> list[Any]:
    spans = _spans(batch)
    if array == "torch":
        import torch

        return [torch.frombuffer(span, dtype=torch.uint8) for span in spans]
    if array == "raw":
        return spans
    import numpy

    return [numpy.frombuffer(span, dtype=numpy.uint8) for span in spans]


def convert_image(batch: Any, output: str, array: str) -> Any:
    """The images of a batch: one tensor, or for encoded output one uint8 array per image."""
    if output == "encoded":
        return _split_slab(batch, array)
    if array == "raw":
        return batch
    if array == "torch":
        import torch

        if batch.count == 0:
            return torch.empty(memoryview(batch).shape, dtype=getattr(torch, output))
        return torch.from_dlpack(batch)
    if array == "jax":
        import jax.numpy

        return jax.numpy.from_dlpack(batch)
    import numpy

    if output != "bfloat16":
        return numpy.asarray(batch)
    try:
        import ml_dtypes
    except ImportError:
        raise MisuseError("output bfloat16 with numpy needs the package ml_dtypes; use torch, JAX or raw") from None
    return numpy.asarray(batch).view(ml_dtypes.bfloat16)


def _column(batch: Any, name: str, array: str) -> Any:
    packed = batch.column(name)
    kind = "float32" if name == "weight" else "int64"
    if array == "torch":
        import torch

        if not len(packed):
            return torch.empty(0, dtype=getattr(torch, kind))
        return torch.frombuffer(packed, dtype=getattr(torch, kind))
    if array == "raw":
        return packed
    import numpy

    column = numpy.frombuffer(packed, dtype=kind)
    if array == "numpy":
        return column
    import jax.numpy

    return jax.numpy.asarray(column if name == "weight" else column.astype("int32"))


def convert_columns(batch: Any, fields: tuple[str, ...], output: str, array: str) -> list[Any]:
    """One array per field; `image` and `meta` are special, the others are columns of numbers."""
    values: list[Any] = []
    for name in fields:
        if name == "image":
            values.append(convert_image(batch, output, array))
        elif name == "meta":
            values.append([json.loads(meta) for meta in batch.metas()])
        else:
            values.append(_column(batch, name, array))
    return values
