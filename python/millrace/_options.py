"""The keyword options of ingest(), export() and Dataset.loader(), so that editors complete them and mypy finds a typo.

Invariant: each is an option of the program, or of Loader, under the same name; a test compares them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    import numpy

    from ._augment import Augment
    from ._tokens import Tokenizer
    from ._views import View

__all__ = ["ExportOptions", "IngestOptions", "LoaderOptions", "ViewOptions"]

Path = str | os.PathLike[str]


class LoaderOptions(TypedDict, total=False):
    """See Loader."""

    shuffle: bool | Literal["window"]
    window_bytes: int
    seed: int
    drop_last: bool
    tail: Literal["drop", "pad", "partial"] | None
    rank: int | None
    world: int | None
    threads: int | None
    prefetch: int
    output: Literal["float32", "bfloat16", "float16", "uint8", "encoded"]
    view: View | None
    views: Sequence[View] | None
    buckets: Sequence[View] | None
    augment: Augment | None
    mixup: float
    cutmix: float
    mean: Sequence[float]
    std: Sequence[float]
    transform: Callable[[Any], Any] | None
    map: Callable[[Any], Any] | None
    map_threads: int
    collate: Callable[[list[Any]], Any] | None
    fields: Sequence[str]
    text_column: str | None
    tokenizer: Tokenizer | str | os.PathLike[str] | None
    max_text: int
    as_dict: bool
    array: Literal["torch", "numpy", "jax", "raw"] | None
    device: Any
    on_bad: Literal["fail", "replace", "mask"]
    max_bad: int
    max_pixels: int
    object_side: float
    object_visible: float
    mask: str | None
    weights: numpy.ndarray[Any, Any] | Sequence[float] | Literal["class"] | None
    epoch_size: int | None
    items: numpy.ndarray[Any, Any] | Sequence[int] | Sequence[bool] | Callable[[int], Any] | None


class IngestOptions(TypedDict, total=False):
    """See `millrace ingest --help=all`. A flag is True or False; sizes are bytes, or texts such as "256MiB"."""

    layout: str
    config: str
    label_column: str
    label_separator: str
    class_pattern: str
    image_column: str
    text_column: str
    split_map: Mapping[str, str]
    split_list: Mapping[str, str]
    split: Mapping[str, float]
    group_pattern: str
    root: str
    exclude: Sequence[str]
    annotations: Sequence[Path]
    class_depth: int
    keep_unlisted: bool
    skip_unmatched: bool
    shard_size: int | str
    shuffle: int
    seek_index: int | bool
    no_seek_index: bool
    force: bool
    check: Literal["header", "decode"]
    max_rejects: int | str
    max_pixels: int
    max_scans: int
    max_file: int | str
    max_files: int
    max_ratio: int
    fail_on_leak: bool | Literal["none", "equal", "alike"]
    near_duplicates: bool
    near_distance: int
    jobs: int
    report: Path


class ExportOptions(TypedDict, total=False):
    """See `millrace export --help`."""

    to: Literal["folder", "imagenette", "imagefolder", "coco", "yolo", "voc", "parquet", "tar", "webdataset"]
    split: str
    task: Literal["auto", "detect", "segment", "obb", "pose"]
    shard_size: int | str
    link: Path
    force: bool


class ViewOptions(TypedDict, total=False):
    """See `millrace view --help` and docs/views.md."""

    classes: Sequence[str]
    source: str
    column: tuple[str, str]
    objects: str
    min_side: int
    fraction: float
    fold: str
    samples: Iterable[int]
    first: int
    drop: Path
    sample_list: Path
    rename_class: Mapping[str, str]
    split: Mapping[str, str]
    weight: Mapping[Path, float]
    balance: Literal["class"]
    repeat: int
    at: Mapping[str, Path]
    force: bool
