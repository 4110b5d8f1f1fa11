"""A batch as arrays of torch, numpy or JAX, without a copy.

Invariant: every array keeps the batch's memory alive; only JAX, whose arrays cannot be written, may copy columns.
"""

from __future__ import annotations

import importlib.util
import json
import math
import struct
import sys
from array import array as _array
from collections.abc import Callable
from typing import Any, Literal

from ._errors import BadDataError, MisuseError
from ._ragged import Ragged
from ._rewrite import Meta
from ._tokens import Texts, token_field

__all__ = ["META_FIELDS", "OBJECT_FIELDS", "Field", "choose_array", "encoded_bytes", "make_fields"]

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


def encoded_bytes(batch: Any) -> list[bytes]:
    """The files of a batch with encoded output."""
    return [bytes(span) for span in _spans(batch)]


def _metas(batch: Any) -> list[Any]:
    """A masked sample has an empty one."""
    return [Meta(json.loads(meta)) if meta else Meta() for meta in batch.metas()]


def _labels_field(array: str, classes: int) -> Field:
    make = _BUFFERS[array]

    def take(batch: Any) -> Any:
        data = bytearray(4 * batch.count * classes)
        rows = memoryview(data).cast("f")
        for i, (meta, label) in enumerate(zip(batch.metas(), batch.column("label"))):
            several = json.loads(meta).get("labels") if b'"labels":' in meta else None
            if several is None and label < 0 and meta:
                rows[i * classes : (i + 1) * classes] = _array("f", [math.nan]) * classes
                continue
            for number in several if several is not None else [label] if label >= 0 else []:
                if not 0 <= number < classes:
                    raise BadDataError(f"sample {batch.column('sample')[i]}: label {number}, of {classes} classes")
                rows[i * classes + number] = 1.0
        if array == "raw":
            return rows.cast("B").cast("f", (batch.count, classes)) if data else rows
        return make(data, "float32", 1).reshape(batch.count, classes)

    return take


# Fields of the objects: their member of mr_batch_objects, its type, its numbers per item, and the starts from inside to outside.
_OBJECTS = ("first_object",)
_OBJECT_FIELDS: dict[str, tuple[str, str, int, tuple[str, ...]]] = {
    "boxes": ("boxes", "float32", 4, _OBJECTS),
    "classes": ("labels", "int32", 1, _OBJECTS),
    "crowd": ("crowd", "uint8", 1, _OBJECTS),
    "number": ("number", "int32", 1, _OBJECTS),
    "polygons": ("point", "float32", 2, ("first_point", "first_polygon", "first_object")),
    "keypoints": ("keypoint", "float32", 3, ("first_keypoint", "first_object")),
}
OBJECT_FIELDS = frozenset((*_OBJECT_FIELDS, "targets"))
META_FIELDS = frozenset(("meta", "captions", "tokens", "labels"))


def _object_field(name: str, array: str) -> Field:
    member, kind, width, starts = _OBJECT_FIELDS[name]
    make = _BUFFERS[array]

    def take(batch: Any) -> Ragged:
        inner, *outer = starts
        rows = Ragged(make(batch.objects(member), kind, width), make(batch.objects(inner), "int64", 1))
        for start in outer:
            rows = Ragged(rows, make(batch.objects(start), "int64", 1))
        return rows

    return take


def _targets_field(array: str) -> Field:
    """For torchvision's transforms and detection models: of each sample a dict."""
    try:
        from torchvision import tv_tensors
    except ImportError:
        raise MisuseError("fields: 'targets' are tv_tensors of torchvision, which is not installed") from None
    if array != "torch":
        raise MisuseError(f"fields: 'targets' are torch tensors; array={array!r}")
    boxes, classes, crowd = (_object_field(name, array) for name in ("boxes", "classes", "crowd"))

    def take(batch: Any) -> list[dict[str, Any]]:
        canvas, samples = (batch.height, batch.width), batch.column("sample")
        return [
            {
                "boxes": tv_tensors.BoundingBoxes(box, format="XYXY", canvas_size=canvas),
                "labels": label.long(),
                "iscrowd": group,
                "image_id": int(sample),
            }
            for box, label, group, sample in zip(boxes(batch), classes(batch), crowd(batch), samples)
        ]

    return take


def _mask_field(array: str) -> Field:
    make = _BUFFERS[array]

    def take(batch: Any) -> Any:
        data, shape = memoryview(batch.masks()), (batch.count, batch.height, batch.width)
        if array == "raw":
            return data.cast("B", shape) if data else data
        return make(data, "uint8", 1).reshape(shape)

    return take


def _torch_buffer(data: bytearray | memoryview[Any], kind: str, width: int) -> Any:
    import torch

    dtype = getattr(torch, kind)
    flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
    return flat if width == 1 else flat.view(-1, width)


def _numpy_buffer(data: bytearray | memoryview[Any], kind: str, width: int) -> Any:
    import numpy

    flat = numpy.frombuffer(data, dtype=kind)
    return flat if width == 1 else flat.reshape(-1, width)


def _jax_buffer(data: bytearray | memoryview[Any], kind: str, width: int) -> Any:
    import jax.numpy

    return jax.numpy.asarray(_numpy_buffer(data, kind, width).astype("int32" if kind == "int64" else kind))


_FORMATS: dict[str, Literal["f", "i", "q", "B"]] = {"float32": "f", "int32": "i", "int64": "q", "uint8": "B"}


def _raw_buffer(data: bytearray | memoryview[Any], kind: str, width: int) -> memoryview[Any]:
    view = memoryview(data)
    if width == 1 or not data:  # a view without items has one dimension
        return view.cast(_FORMATS[kind])
    size = struct.calcsize(_FORMATS[kind])
    return view.cast(_FORMATS[kind], (len(data) // (size * width), width))


_BUFFERS: dict[str, Callable[[bytearray | memoryview[Any], str, int], Any]] = {
    "torch": _torch_buffer,
    "numpy": _numpy_buffer,
    "jax": _jax_buffer,
    "raw": _raw_buffer,
}


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
    kind = numpy.float32 if name in ("weight", "share") else numpy.int32
    return lambda batch: jax.numpy.asarray(convert(batch).astype(kind))


def _for_raw(name: str, output: str) -> Field:
    if name == "image":
        return _spans if output == "encoded" else lambda batch: batch
    return lambda batch: batch.column(name)


_MAKERS = {"torch": _for_torch, "numpy": _for_numpy, "jax": _for_jax, "raw": _for_raw}


def make_fields(fields: tuple[str, ...], output: str, array: str, classes: int, texts: Texts) -> list[Field]:
    """A function per field that takes it out of a batch: the images (one tensor, or for encoded output one uint8 array per
    image), the metas as dicts, the captions as lists, their token ids, or a column of numbers."""
    return [_make_field(name, output, array, classes, texts) for name in fields]


def _make_field(name: str, output: str, array: str, classes: int, texts: Texts) -> Field:
    if name == "meta":
        return _metas
    if name == "captions":
        return lambda batch: batch.captions(texts.column)
    if name == "tokens":
        return token_field(texts, _BUFFERS[array])
    if name == "labels":
        return _labels_field(array, classes)
    if name == "mask":
        return _mask_field(array)
    if name == "targets":
        return _targets_field(array)
    return _object_field(name, array) if name in _OBJECT_FIELDS else _MAKERS[array](name, output)
