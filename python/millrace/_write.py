"""Datasets from samples that a program makes: written as a WebDataset tar into `millrace ingest -`.

Invariant: memory does not grow with the number of samples, and the dataset appears whole or not at all.
"""

from __future__ import annotations

import contextlib
import json
import math
import operator
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NotRequired, TypedDict, Unpack

from ._dataset import Dataset, Path
from ._errors import MisuseError, from_exit_code
from ._hub import hub_classes, hub_samples, is_hub_dataset
from ._options import IngestOptions
from ._program import Run, option_words, warn_of
from ._rewrite import Object, class_number, compose_meta, path_text

__all__ = ["WriteSample", "Writer", "write"]

_BLOCK = 512


class WriteSample(TypedDict):
    """What Writer.add() takes, as a dict for write()."""

    split: str
    image: bytes
    label: NotRequired[int | str]
    meta: NotRequired[Mapping[str, Any]]
    source: NotRequired[str]
    objects: NotRequired[Iterable[Object]]
    labels: NotRequired[Iterable[int | str]]


def _encoded(image: Any) -> bytes:
    """The bytes of an image's file, from any object that lends them."""
    if isinstance(image, bytes):
        return image
    try:
        view = memoryview(image)
    except TypeError:
        path = isinstance(image, (str, os.PathLike))
        what = "a path: pass the bytes of the file" if path else f"{type(image).__name__}: pass the bytes of a JPEG, PNG or WebP"
        raise MisuseError(f"image: {what}, which are stored as they are") from None
    if view.ndim != 1 or view.itemsize != 1:
        raise MisuseError("image: an array of pixels: encode it first, for instance as PNG (the bytes are stored as they are)")
    return bytes(view)


def _numbered(classes: Any) -> dict[str, int]:
    """The numbers of classes: a list in their order, or a dict such as torchvision's class_to_idx."""
    if isinstance(classes, (str, bytes, set, frozenset)):
        raise MisuseError("classes: pass a list, the names in the order of their numbers")
    names = sorted(classes, key=classes.__getitem__) if isinstance(classes, Mapping) else list(classes)
    if isinstance(classes, Mapping) and [classes[name] for name in names] != list(range(len(names))):
        raise MisuseError("classes: the numbers of a dict must be 0, 1, 2 ...")
    if len(set(names)) != len(names) or any(not isinstance(name, str) or not name.isprintable() or not name for name in names):
        raise MisuseError("classes: names are different from each other, printable, and not empty")
    return {name: number for number, name in enumerate(names)}


def _extension(image: bytes) -> str:
    if image[:3] == b"\xff\xd8\xff":
        return "jpg"
    if image[:8] == b"\x89PNG\r\n\x1a\n":
        return "png"
    if image[:4] == b"RIFF" and image[8:12] == b"WEBP":
        return "webp"
    raise MisuseError("image: neither JPEG, PNG nor WebP; encode it first (the bytes are stored as they are)")


def _check_label(label: Any) -> int | str | None:
    """As millrace itself gives labels, and as columns of tables hold them: -1 and NaN mean no label, whole floats are numbers."""
    if label is None or isinstance(label, str):
        return label
    number = label
    if isinstance(label, float) or type(label).__name__.startswith("float"):
        if math.isnan(label):
            return None
        number = int(label) if float(label).is_integer() else label
    try:
        if isinstance(label, bool) or operator.index(number) < -1:
            raise TypeError
        return None if number == -1 else operator.index(number)
    except TypeError:
        raise MisuseError(f"label: {label!r} is neither a class number nor a name") from None


class Writer:
    """Writes a dataset sample by sample; `with` publishes it at the end, or leaves nothing after an exception.

    Args:
        to: the dataset's folder; it must not exist yet (or pass force=True).
        classes: the class names in the order of their numbers, or a dict of numbers by name, such as torchvision's
            class_to_idx; labels may then be numbers or names. Default: label names in alphabetical order.
        options: those of `millrace ingest`, by keyword. An image that ingest rejects is an error unless max_rejects is given.

    Attributes:
        dataset: the finished Dataset, after the `with`.

    Warns:
        remarks of ingest, such as objects that extend beyond their image; all of them are in `report` of the dataset.

    >>> import millrace
    >>> flowers = millrace.Dataset("flowers")
    >>> with millrace.Writer("one-flower") as writer:
    ...     writer.add("train", flowers["train"][0]["image"], label="rose", meta={"caption": "A rose."})
    >>> writer.dataset["train"].meta(0)["columns"]["caption"]
    'A rose.'
    """

    dataset: Dataset

    def __init__(self, to: Path, *, classes: Sequence[str] | Mapping[str, int] | None = None, **options: Unpack[IngestOptions]) -> None:
        self._to = os.fspath(to)
        self._count = 0
        self._depth = 4  # frames from a warning up to the `with` of the caller
        self._splits: dict[str, None] = {}
        self._classes = None if classes is None else _numbered(classes)
        options.setdefault("max_rejects", 0)
        words = ["ingest", "-", self._to, "--quiet", "--layout=webdataset", *option_words(options)]
        self._partial = self._to.rstrip("/") + ".partial"
        self._leftover = os.path.exists(self._partial)
        self._run: Run | None = Run(words, stdin=subprocess.PIPE)

    def add(
        self,
        split: str,
        image: bytes,
        label: int | str | None = None,
        meta: Mapping[str, Any] | None = None,
        source: str | None = None,
        objects: Iterable[Object] | None = None,
        labels: Iterable[int | str] | None = None,
    ) -> None:
        """Adds one sample.

        Args:
            split: the split's name ("valid" and "validation" are stored as "val"); samples keep their order within it.
            image: an encoded JPEG, PNG or WebP; stored as it is.
            label: class number or name; None, -1 and NaN: no label. A float must be whole.
            meta: anything JSON can hold; it is the sample's meta["columns"]. The meta of another dataset's sample, as it is, comes
                back whole: objects, captions, masks, several labels.
            source: where the sample comes from, kept as meta["columns"]["source"].
            objects: what the image shows, a dict for each: "label" or "class" (number or name, of `classes`), "box" (x, y of the
                upper left corner, width, height), "polygons", "oriented_box", "keypoints", "crowd", "id", all optional, as in
                meta["objects"]: pixels of the image as stored (shards/FORMAT.md, "Objects").
            labels: instead of `label`, the classes of a sample that may have several.
        """
        if not isinstance(split, str) or not split.isprintable() or not split or "/" in split or "\\" in split or split.startswith("."):
            raise MisuseError(f"split: {split!r} is not a name")
        self._splits[split] = None
        key = f"{split}/{self._count:09d}"
        label = _check_label(label)
        if label is not None and labels is not None:
            raise MisuseError("label and labels: pass one of them")
        if isinstance(labels, str):
            raise MisuseError(f"labels: {labels!r} is not a list")
        image = _encoded(image)
        number = label if label is None or self._classes is None else class_number(label, self._classes, "label")
        text = compose_meta(meta, objects, labels, source, self._classes)
        self._send(f"{key}.{_extension(image)}", image)
        if number is not None:
            self._send(f"{key}.cls", str(number).encode())
        if text is not None:
            self._send(f"{key}.json", text.encode())
        self._count += 1

    def _send(self, name: str, data: bytes) -> None:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        self._pipe(member.tobuf(tarfile.PAX_FORMAT) + data + bytes(-len(data) % _BLOCK))

    def _pipe(self, data: bytes) -> None:
        if self._run is None:
            raise MisuseError("the writer is closed")
        stdin = self._run.process.stdin
        assert stdin is not None
        try:
            stdin.write(data)
        except BrokenPipeError:
            self._finish()  # the program has ended: its message says why
            raise

    def _finish(self) -> None:
        run, self._run = self._run, None
        if run is None:
            raise MisuseError("the writer is closed")
        assert run.process.stdin is not None
        try:
            run.process.stdin.close()
        except BrokenPipeError:
            pass
        code, _, message = run.finish()
        if code:
            self._discard()
            raise from_exit_code(code, message)

    def close(self) -> Dataset:
        """Finishes and publishes the dataset."""
        facts = {"splits": list(self._splits), "classes": [path_text(name) for name in self._classes or ()]}
        self._send("__millrace__/dataset.json", json.dumps(facts).encode())
        self._pipe(bytes(2 * _BLOCK))  # the end of a tar
        self._finish()
        self.dataset = Dataset(self._to)
        warn_of(self.dataset, "millrace.write", stacklevel=self._depth)
        return self.dataset

    def abort(self) -> None:
        """Ends the program; nothing is published."""
        run, self._run = self._run, None
        if run is None:
            return
        run.stop()
        self._discard()

    def _discard(self) -> None:
        """Removes what the program keeps to continue later: this source cannot be read again."""
        if self._leftover:
            return
        shutil.rmtree(self._partial, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.unlink(self._partial + ".owner")

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        if getattr(self, "_run", None) is not None:
            self.abort()


def write(
    samples: Iterable[WriteSample] | Any,
    to: Path,
    *,
    classes: Sequence[str] | Mapping[str, int] | None = None,
    **options: Unpack[IngestOptions],
) -> Dataset:
    """Writes a dataset of dicts, for instance from a generator; see Writer.

    Or a dataset of Hugging Face's library `datasets` (or a dict of them by split): its Image column, its ClassLabel or column
    "label", boxes of a column "objects" (x, y, width, height), and all other columns as metas. Images of files stay their bytes.

    >>> import millrace
    >>> flowers = millrace.Dataset("flowers")
    >>> samples = ({"split": "train", "image": s["image"], "label": s["label"]} for s in flowers["val"])
    >>> millrace.write(samples, "val-only", classes=flowers.classes)
    millrace.Dataset('val-only', train: 36, 10 classes)
    """
    if is_hub_dataset(samples):
        classes = hub_classes(samples) if classes is None else classes
        samples = hub_samples(samples)
    with Writer(to, classes=classes, **options) as writer:
        writer._depth += 1
        for sample in samples:
            writer.add(**sample)
    return writer.dataset
