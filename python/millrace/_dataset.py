"""Datasets and their splits: what is in them, and single samples.

Invariant: a Dataset is its path and an open C handle; it is pickled as the path and opened again where it arrives.
"""

from __future__ import annotations

import json
import operator
import os
import threading
from array import array as _array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, TypedDict, Unpack, overload

from . import _millrace
from ._checks import OUTPUTS
from ._errors import BadDataError, MisuseError
from ._loader import Loader
from ._options import LoaderOptions
from ._rewrite import Meta
from ._sampling import choose_numbers, pack_numbers
from ._show import dataset_html, split_html
from ._views import Square, View

if TYPE_CHECKING:
    import numpy

__all__ = ["Dataset", "Sample", "Split"]

Path = str | os.PathLike[str]


def _absolute(path: str) -> str:
    """Where it is whatever the working directory becomes; a URL stays as it is."""
    return path if "://" in path else os.path.abspath(path)


class Sample(TypedDict):
    """One sample of a split."""

    image: bytes  #: the encoded file, exactly as the source had it
    label: int  #: class number; -1: none
    width: int  #: pixels, as stored
    height: int
    meta: Meta  #: the source's name, captions, annotations (FORMAT.md, "meta")


class Dataset(Mapping[str, "Split"]):
    """A prepared dataset: a mapping from the names of its splits to the splits.

    Args:
        path: the folder that `millrace ingest` made, or the URL of one (http, https, s3, gs, hf; docs/remote.md).
        expect: the digest that it must have, for instance from a lock file.
        local: a folder on a disk of this host: loaders copy shards there in the order in which they first read them, verify
            the copies, and read them instead of the dataset as they are ready. Any number of programs may share it, and
            the next run finds the copies. What goes wrong with them changes no result (`local_remark`).
        local_size: bytes of copies beyond which those that no one uses are removed, the longest unused first; 0: no limit.

    Opening reads the manifest and the indexes' headers, no image. The files' contents are not checked before they are
    read; `millrace.verify()` does that.

    Raises:
        MisuseError: there is no dataset, its digest is not the expected one, or `local` is in it.
        BadDataError: its manifest or an index is damaged.

    >>> import millrace
    >>> dataset = millrace.Dataset("flowers")
    >>> list(dataset), len(dataset["train"]), dataset.classes[:2]
    (['train', 'val'], 84, ['n01440764', 'n02102040'])
    """

    def __init__(
        self, path: Path, *, expect: str | None = None, local: Path | None = None, local_size: int = 0
    ) -> None:
        self.path: str = os.fspath(path)
        self._place = _absolute(self.path)
        self._local: str | None = None if local is None else _absolute(os.fspath(local))
        self._local_size = local_size
        self._open()
        if expect is not None and self.digest != expect:
            raise MisuseError(f"{self.path}: its digest is {self.digest}, not {expect}")

    def _open(self) -> None:
        self._handle = _millrace.Dataset(self._place)
        self.digest, self.layout, splits, self.classes = self._handle.facts()
        self._counts: dict[str, int] = dict(splits)
        self._manifest: dict[str, Any] | None = None
        if self._local is not None:
            self._handle.stage(self._local, self._local_size)

    @property
    def local_remark(self) -> str | None:
        """One sentence about what went wrong with the copies in `local`, or did not fit; None: nothing."""
        return self._handle.stage_remark()

    @property
    def manifest(self) -> dict[str, Any]:
        """The whole manifest.json; of a view, its file."""
        if self._manifest is None:
            view = os.path.isfile(self._place)
            with open(self._place if view else os.path.join(self._handle.folder(), "manifest.json"), "rb") as file:
                self._manifest = json.load(file)
        return self._manifest

    @property
    def report(self) -> dict[str, Any]:
        """What `ingest` wrote about the source, report.json: rejects, leaks, what was left out, classes by split."""
        if "://" in self.path:
            raise MisuseError(f"{self.path}: report.json is beside a dataset, and is not fetched from a URL")
        if os.path.isfile(self._place):
            raise MisuseError(f"{self.path}: is a view; each of its datasets has a report")
        with open(os.path.join(self._place, "report.json"), "rb") as file:
            report: dict[str, Any] = json.load(file)
        return report

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "place": self._place, "digest": self.digest, "local": self._local, "local_size": self._local_size}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path, self._place = state["path"], state["place"]
        self._local, self._local_size = state["local"], state["local_size"]
        self._open()
        if self.digest != state["digest"]:
            raise BadDataError(f"{self.path}: not the dataset that was pickled")

    def __getitem__(self, name: str) -> Split:
        if name not in self._counts:
            raise KeyError(f"{self.path}: no split {name!r}; it has {', '.join(self._counts)}")
        return Split(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {count}" for name, count in self._counts.items())
        return f"millrace.Dataset({self.path!r}, {counts}, {len(self.classes)} classes)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dataset) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def _repr_html_(self) -> str:
        return dataset_html(self)

    def loader(self, split: str, batch_size: int, **options: Unpack[LoaderOptions]) -> Loader:
        """A Loader of this split; see Loader for the options."""
        return Loader(self[split], batch_size, **options)


class Split(Sequence[Sample]):
    """The samples of a split in the dataset's order: a map-style dataset for torch and others.

    Each read opens the files it needs, so that a Split works in threads, after fork and in spawned processes. A sample
    is checked against its hash before it is returned.

    >>> import millrace
    >>> split = millrace.Dataset("flowers")["train"]
    >>> sample = split[0]
    >>> sample["image"][:2], sample["label"], sample["meta"]["source"]
    (b'\\xff\\xd8', 0, 'train/n01440764/n01440764_1.JPEG')
    >>> split.labels[:3]
    array([0, 0, 0])
    """

    def __init__(
        self,
        dataset: Dataset,
        name: str,
        transform: Callable[[Sample], Any] | None = None,
        numbers: _array[int] | None = None,
    ) -> None:
        self.dataset = dataset
        self.name = name
        self.transform = transform
        self._numbers = numbers  # of samples that are seen; None: all
        self._length = dataset._counts[name] if numbers is None else len(numbers)
        self._decoder: _Decoder | None = None

    def with_transform(self, transform: Callable[[Sample], Any] | None) -> Split:
        """The same split whose items are transform(sample)."""
        return Split(self.dataset, self.name, transform, self._numbers)

    @property
    def numbers(self) -> Sequence[int]:
        """The number in the dataset's split of each sample: range(len(self)), but for what select() and filter() give."""
        return range(self._length) if self._numbers is None else self._numbers

    def select(self, samples: Any) -> Split:
        """Some of the samples, each any number of times, in this order; no byte is copied.

        `millrace.view(FILE, "DATASET:SPLIT", samples=split.numbers)` keeps a selection in a file with a digest.

        Args:
            samples: integers from 0, a slice, or a mask, a bool for each sample.

        >>> import millrace
        >>> split = millrace.Dataset("flowers")["train"]
        >>> split.select(split.labels == 3)
        millrace.Split('flowers', 'train', 9 of 84 samples)
        >>> split.select(slice(0, 84, 2)).select([1]).numbers[0]
        2
        """
        chosen = range(*samples.indices(self._length)) if isinstance(samples, slice) else samples
        places = pack_numbers("select", chosen, self._length)
        return Split(self.dataset, self.name, self.transform, choose_numbers("select", places, self.numbers))

    def filter(self, keep: Callable[[Sample], Any]) -> Split:
        """The samples for which keep(sample) is true; the samples it is given have no "image", which is not read.

        >>> import millrace
        >>> train = millrace.Dataset("flowers")["train"]
        >>> train.filter(lambda sample: sample["width"] > sample["height"])
        millrace.Split('flowers', 'train', 49 of 84 samples)
        """
        return self.select([at for at in range(self._length) if keep(self._look(at))])

    def to_arrow(self, *, images: bool = False) -> Any:
        """A table of the samples, with pyarrow: sample, label, class, width, height, source, meta (JSON), and image (bytes)."""
        import pyarrow

        return pyarrow.table(self._columns(images))

    def to_pandas(self, *, images: bool = False) -> Any:
        """The same as a DataFrame, with pandas.

        Metas are read one by one, some ten microseconds each; images only if they are asked for.
        """
        import pandas

        return pandas.DataFrame(self._columns(images))

    def _columns(self, images: bool) -> dict[str, list[Any]]:
        names = ("label", "width", "height", "meta") + (("image",) if images else ())
        columns: dict[str, list[Any]] = {name: [] for name in ("sample", "label", "class", "width", "height", "source", "meta")}
        if images:
            columns["image"] = []
        for number in self.numbers:
            image, meta, label, width, height, _, _ = self.dataset._handle.read(self.name, number, images)
            values = {"label": label, "width": width, "height": height, "meta": meta, "image": image}
            for name in names:
                columns[name].append(values[name])
            columns["sample"].append(number)
            columns["class"].append(self.dataset.classes[label] if label >= 0 else None)
            columns["source"].append(json.loads(meta).get("source"))
        return columns

    @property
    def labels(self) -> numpy.ndarray[Any, numpy.dtype[numpy.int64]]:
        """The label of every sample, shape (len(self),), int64, -1 for none; read from the indexes, no image touched."""
        import numpy

        labels = numpy.frombuffer(self.dataset._handle.labels(self.name), dtype=numpy.int64)
        return labels if self._numbers is None else labels[numpy.asarray(self._numbers, dtype=numpy.int64)]

    def sizes(self, *, apply_orientation: bool = False) -> numpy.ndarray[Any, numpy.dtype[numpy.uint32]]:
        """The width and height of every sample in pixels, shape (len(self), 2), uint32; no image touched.

        Args:
            apply_orientation: as seen with the EXIF orientation; otherwise as stored.
        """
        import numpy

        sizes = numpy.frombuffer(self.dataset._handle.sizes(self.name, apply_orientation), dtype=numpy.uint32).reshape(-1, 2)
        return sizes if self._numbers is None else sizes[numpy.asarray(self._numbers, dtype=numpy.int64)]

    def meta(self, i: SupportsIndex) -> Meta:
        """The meta of sample i, without reading its image."""
        read = self.dataset._handle.read(self.name, self._position(i), False)
        return Meta(json.loads(read[1]))

    def array(self, i: SupportsIndex, view: View = Square()) -> numpy.ndarray[Any, numpy.dtype[numpy.uint8]]:
        """Sample i decoded and resized in C: uint8, shape (view.size, view.size, 3), RGB.

        A Crop draws what it would draw in epoch 0 of a loader with seed 0.

        Raises:
            BadSampleError: it is damaged or cannot be decoded.
        """
        if self._decoder is None or self._decoder.view != view or self._decoder.process != os.getpid():
            self._decoder = _Decoder(self, view)
        pixels: numpy.ndarray[Any, numpy.dtype[numpy.uint8]] = self._decoder.decode(self._position(i))
        return pixels

    def _position(self, i: SupportsIndex) -> int:
        """The sample's number in the dataset's split."""
        try:
            at = operator.index(i)
        except TypeError:
            raise TypeError(f"{self.name}: {i!r} is not a sample's number; select() takes several") from None
        if not -self._length <= at < self._length:
            raise IndexError(f"{self.name}: no sample {at}; the split has {self._length}")
        return self.numbers[at % self._length]

    def _look(self, at: int) -> Any:
        """Item `at` without its image."""
        _, meta, label, width, height, _, _ = self.dataset._handle.read(self.name, self.numbers[at], False)
        return {"label": label, "width": width, "height": height, "meta": Meta(json.loads(meta))}

    def _read(self, at: int) -> Any:
        """Sample number `at` of the dataset's split."""
        image, meta, label, width, height, _, _ = self.dataset._handle.read(self.name, at, True)
        sample: Sample = {
            "image": image,
            "label": label,
            "width": width,
            "height": height,
            "meta": Meta(json.loads(meta)),
        }
        return sample if self.transform is None else self.transform(sample)

    @overload
    def __getitem__(self, i: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> list[Any]: ...
    def __getitem__(self, i: SupportsIndex | slice) -> Any:
        if isinstance(i, slice):
            return [self._read(at) for at in self.numbers[i]]
        return self._read(self._position(i))

    def __getitems__(self, indices: Sequence[SupportsIndex]) -> list[Any]:
        """Several samples; torch's DataLoader fetches its batches so."""
        return [self[i] for i in indices]

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        of = "" if self._numbers is None else f" of {self.dataset._counts[self.name]}"
        return f"millrace.Split({self.dataset.path!r}, {self.name!r}, {self._length}{of} samples)"

    def _repr_html_(self) -> str:
        return split_html(self)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_decoder": None}


class _Decoder:
    """Decodes single samples of a split with one view: a loader without threads that is moved from sample to sample."""

    def __init__(self, split: Split, view: View) -> None:
        self.view = view
        self.process = os.getpid()
        self._lock = threading.Lock()
        options = {**view._options(), "global_batch": 1, "shuffle": 1, "deliver": OUTPUTS["uint8"], "prefetch": 1}
        self._loader = _millrace.Loader(split.dataset._handle, split.name, {**options, "epochs": 1})

    def decode(self, at: int) -> Any:
        import numpy

        with self._lock:
            self._loader.seek(0, at)
            return numpy.asarray(next(self._loader))[0]
