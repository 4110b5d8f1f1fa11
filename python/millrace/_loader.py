"""Loaders: batches of a split for one rank, prepared by threads in C.

Invariant: where a loader is, is (epoch, position) after the last batch that the caller got; rank and thread count are
not part of it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from . import _millrace
from ._arrays import META_FIELDS, OBJECT_FIELDS, Field, choose_array, make_fields
from ._augment import Augment, check_augment
from ._checks import (
    ON_BAD,
    OUTPUTS,
    SHUFFLES,
    TAILS,
    check_colour,
    check_fields,
    check_integer,
    check_name,
    check_number,
    check_output,
    check_split,
    choose,
    choose_map,
    default_threads,
    refuse_worker,
    word_of,
)
from ._errors import MisuseError
from ._map import MapFeed
from ._sampling import Items
from ._several import BucketLoader, SeveralBatch, SeveralLoader, divide
from ._tokens import Tokenizer, check_texts
from ._views import Crop, Square, View, check_view, check_views
from ._world import find_world

if TYPE_CHECKING:
    import numpy

    from ._dataset import Split

__all__ = ["Batch", "Loader"]

_WINDOW = 1 << 30  # bytes
_FOREVER = 2**64 - 1

_Handle: TypeAlias = "_millrace.Loader | SeveralLoader | BucketLoader"

Batch = _millrace.Batch

# The threads of loaders that are alive when the interpreter ends are stopped while it still works.
_loaders: weakref.WeakSet[Loader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for loader in list(_loaders):
        loader.close()


def _renew_locks() -> None:
    """In a child of fork, where a thread that held a lock does not exist."""
    for loader in list(_loaders):
        loader._lock = threading.RLock()
        loader._resumed = loader._resumed or loader._at[1] > 0  # the child continues where its parent was


os.register_at_fork(after_in_child=_renew_locks)


class Loader:
    """Batches of a split for this rank; one `for` is one epoch, and the next `for` the next epoch.

    Args:
        dataset: the split, as `millrace.Dataset(path)["train"]`.
        batch_size: samples per step of this rank.
        shuffle: True: a new random order each epoch; "window": neighbours in blocks, shuffled within window_bytes, for
            slow disks; False: the dataset's order.
        seed: the seed of the order and of random crops.
        drop_last: leave out the samples that do not fill a step; short for tail="drop".
        tail: the last step: "drop" it, "pad" it with samples of weight 0, or make it "partial". Default: by drop_last,
            otherwise "pad" with several ranks and "partial" with one: a state goes from one to the other, as both have the
            same steps. The number of steps is the same on every rank.
        rank, world: default: from torch.distributed, JAX, or the environment of mpirun, torchrun or srun; else 0 of 1. They
            are looked up when a pass begins, so a loader may be made before the ranks are, and be pickled or forked to them.
        threads: default: one per processor of this process, shared among the ranks of this host if the launcher
            says how many there are; 0: the work is done in next().
        prefetch: batches prepared ahead.
        output: "float32", "bfloat16" or "float16", normalised, shape (batch, 3, size, size); "uint8", shape (batch, size, size, 3);
            "encoded": a list of uint8 arrays with the files' bytes.
        view: Crop, RandomCrop, Square, Center or Letterbox; default: Crop(224) with shuffle, otherwise Square(224).
        views: several views of each sample, such as [Crop(224), Crop(224), Crop(96)]: "image" is a list of as many arrays, the
            rest (and objects) of the first. Each is drawn and decoded apart, and has its share of the threads.
        buckets: views of several ratios, such as [Crop((256, 256), ratio=(1, 1)), Crop((192, 336), ratio=(1.75, 1.75))]: a sample
            is seen by the one whose ratio (width to height) is nearest to its own, and a batch is of one of them, so that shapes
            differ from batch to batch. The order of views and samples is new in each epoch and the same on all ranks; each view
            has a tail of its own, threads and prefetched batches, and "item" counts its samples.
        augment: Augment(brightness=0.4, grey=0.2 ...): random changes of colours; decoded output only.
        mixup, cutmix: alphas of Beta(alpha, alpha), for instance 0.2 and 1.0; 0: off. Samples 2k and 2k + 1 of an epoch's order
            are mixed with one another; with both, each pair by one of them. "share" says how much of "label" is left, and the
            rest is "other_label" (of sample "other"; -1, and share 1, where nothing is mixed). The pairs and shares are the
            same for any number of ranks, whose batch_size must be even.
        mean, std: of pixel / 255, per colour; default: 0.5.
        transform: called with each whole batch, in the caller's thread; its result is the batch.
        map: called with each sample, a dict of `fields` (with output="encoded", "image" is bytes), in threads; the results, in
            order, become the batch. A split.with_transform(f) is the same with f and the split's items.
        map_threads: default: one per processor of this process. One at a time runs Python, but while PIL, numpy and torch work
            others run; for functions of pure Python, pass the split to torch's DataLoader, which has processes.
        collate: called with the list of a batch's results of `map`; default: torch's default_collate, or arrays stacked.
        fields: what a batch has: "image", "label", "weight", "sample", "item", "meta", "width", "height", "share",
            "other_label", ...;
            "boxes", "classes", "crowd", "number", "polygons", "keypoints": what the samples show, moved with the image, each
            a Ragged; "targets": a dict for each sample, as torchvision's transforms and detection models take them: "boxes"
            (tv_tensors.BoundingBoxes), "labels", "iscrowd", "image_id" (array="torch");
            "mask": the polygons as uint8, shape (batch, size, size): class + 1, 0 where there is none, 255 for crowds;
            "captions": a list of texts for each sample; "tokens": their ids, int64, a Ragged with a row of `max_text` ids for
            each text;
            "labels": the classes of samples that may have several, and of others their one, float32, shape (batch, classes),
            1 for each; NaN for a sample whose classes are not known.
        text_column: the column of the captions; default: "image_description", otherwise "captions", as `millrace train`.
        tokenizer: for the field "tokens": a Tokenizer, or its path.
        max_text: the most ids of a text in "tokens"; longer texts are cut.
        as_dict: batches are dicts by field instead of tuples.
        array: "torch", "numpy", "jax", or "raw" (a Batch: buffer protocol and DLPack, needs none of them). Default: torch if
            it is imported, else JAX if it is, else numpy.
        device: a CUDA device of torch: batches are copied there from pinned memory, beside the computation.
        on_bad: a damaged sample: "fail", "replace" it by the next good one, or "mask" it (zeros, weight 0).
        max_bad: bad samples tolerated; 0: no limit.
        max_pixels: a larger image is a damaged sample; 0: 178,956,970, as everywhere.
        object_side: objects ("boxes", "classes" ...) narrower or lower than this many pixels of the view are left out.
        object_visible: the share of an object's box, 0 to 1, that must be in the view.
        mask: the stored mask that the field "mask" shows, a name in meta["masks"], such as "SegmentationClass"; default: the
            polygons. Numbers as they are in the PNG, the nearest one of each pixel; 255 where there is none.
        items: sample numbers (places in a selection) to load instead of the whole split, each any number of times; or a mask, a
            bool for each sample; or a function that returns either for an epoch, and always the same for the same one.
        weights: how often each sample is seen, in proportion: sample i in each epoch epoch_size * weight[i] / sum times, rounded
            down or up, and exactly over several epochs. "class": each class as often as the others.
        epoch_size: samples that weights draw in an epoch; default: as many as the split has.

    Raises:
        MisuseError: an invalid option; the message names it.
        BadSampleError: while iterating, with on_bad="fail".

    Arrays share the batch's memory (no copy), may be written to, and may be kept forever.

    Threads may share one pass, `it = iter(loader)`: each batch goes to one of them, and the pass ends for all. close() from
    any thread ends the waiting of the others, with a MisuseError.

    >>> import millrace
    >>> train = millrace.Dataset("flowers")["train"]
    >>> loader = millrace.Loader(train, 32, shuffle=True, view=millrace.Crop(64), array="numpy")
    >>> for image, label in loader:
    ...     print(image.shape, image.dtype, len(label))
    (32, 3, 64, 64) float32 32
    (32, 3, 64, 64) float32 32
    (20, 3, 64, 64) float32 20
    """

    def __init__(
        self,
        dataset: Split,
        batch_size: int,
        *,
        shuffle: bool | Literal["window"] = False,
        window_bytes: int = 0,
        seed: int = 0,
        drop_last: bool = False,
        tail: Literal["drop", "pad", "partial"] | None = None,
        rank: int | None = None,
        world: int | None = None,
        threads: int | None = None,
        prefetch: int = 2,
        output: Literal["float32", "bfloat16", "float16", "uint8", "encoded"] = "float32",
        view: View | None = None,
        views: Sequence[View] | None = None,
        buckets: Sequence[View] | None = None,
        augment: Augment | None = None,
        mixup: float = 0.0,
        cutmix: float = 0.0,
        mean: Sequence[float] = (0.5, 0.5, 0.5),
        std: Sequence[float] = (0.5, 0.5, 0.5),
        transform: Callable[[Any], Any] | None = None,
        map: Callable[[Any], Any] | None = None,
        map_threads: int = 0,
        collate: Callable[[list[Any]], Any] | None = None,
        fields: Sequence[str] = ("image", "label"),
        text_column: str | None = None,
        tokenizer: Tokenizer | str | os.PathLike[str] | None = None,
        max_text: int = 128,
        as_dict: bool = False,
        array: Literal["torch", "numpy", "jax", "raw"] | None = None,
        device: Any = None,
        on_bad: Literal["fail", "replace", "mask"] = "fail",
        max_bad: int = 0,
        max_pixels: int = 0,
        object_side: float = 1.0,
        object_visible: float = 0.0,
        mask: str | None = None,
        items: numpy.ndarray[Any, Any] | Sequence[int] | Sequence[bool] | Callable[[int], Any] | None = None,
        weights: numpy.ndarray[Any, Any] | Sequence[float] | Literal["class"] | None = None,
        epoch_size: int | None = None,
    ) -> None:
        self.dataset = check_split(dataset)
        self.batch_size = check_integer("batch_size", batch_size, 1)
        self.drop_last = drop_last
        self._given = find_world(rank, world) if rank is not None or world is not None else None
        self._map, self.fields, self.output = choose_map(dataset, map, check_fields(fields), check_output(output))
        self._map_threads = check_integer("map_threads", map_threads, 0)
        self._collate = collate
        self._texts = check_texts(self.fields, text_column, tokenizer, max_text)
        self.array = choose_array(array)
        if self._map is not None and array is None and self.array == "jax":
            self.array = "numpy"
        self._views = check_views("views", views, view, self.output)
        self._buckets = check_views("buckets", buckets, view, self.output)
        if views is not None and buckets is not None:
            raise MisuseError("views and buckets: pass one of them")
        self._take = self._make_fields()
        self._as_dict = as_dict
        self._transform = transform
        if mask is not None and "mask" not in self.fields:
            raise MisuseError(f"mask: {mask!r} is what the field 'mask' shows, which fields does not name")
        if drop_last and tail not in (None, "drop"):
            raise MisuseError(f"drop_last and tail={tail!r}: pass one of them")
        several = self._views or self._buckets
        view = several[0] if several else check_view(view) or (Crop() if shuffle else Square())
        self._order: dict[str, Any] = {
            "seed": check_integer("seed", seed, 0),
            "shuffle": choose("shuffle", SHUFFLES, shuffle),
            "window_bytes": check_integer("window_bytes", window_bytes, 0) or (_WINDOW if shuffle == "window" else 0),
        }
        tail = "drop" if drop_last else tail
        self._tail = None if tail is None else choose("tail", TAILS, tail)
        self._options: dict[str, Any] = {
            **self._order,
            **view._options(),
            **check_augment(augment)._options(),
            "mixup": check_number("mixup", mixup, low=0.0, high=1000.0),
            "cutmix": check_number("cutmix", cutmix, low=0.0, high=1000.0),
            "threads": default_threads() if threads is None else check_integer("threads", threads, 0),
            "prefetch": check_integer("prefetch", prefetch, 1),
            "deliver": OUTPUTS[self.output],
            "mean": check_colour("mean", mean, low=-1.0, high=1.0),
            "std": check_colour("std", std, low=1e-6, high=10.0),
            "on_bad": choose("on_bad", ON_BAD, on_bad),
            "max_bad": check_integer("max_bad", max_bad, 0),
            "max_pixels": check_integer("max_pixels", max_pixels, 0),
            "with_meta": not META_FIELDS.isdisjoint(self.fields),
            "with_masks": "mask" in self.fields,
            "mask": check_name("mask", mask),
            "with_objects": not OBJECT_FIELDS.isdisjoint(self.fields),
            "object_side": check_number("object_side", object_side, low=1e-3, high=16384.0),
            "object_visible": check_number("object_visible", object_visible, low=0.0, high=1.0),
            "epochs": _FOREVER,
        }
        size = None if epoch_size is None else check_integer("epoch_size", epoch_size, 1)
        self._divided: tuple[bytes | None, list[bytes]] | None = None  # the items, by bucket
        self._items = Items(dataset, items, weights, size, self._order["seed"])
        self._device = device
        self._feed = _choose_feed(device, self)
        self._at = (0, 0)
        self._resumed = False
        self._closed = False
        self._pass = 0
        self._running = False  # a pass has begun: the ranks stay as they are
        self._handle: _Handle | None = None
        self._opened: tuple[tuple[int, int], int] | None = None  # of which ranks and, if epochs differ, for which epoch
        self._process = os.getpid()
        self._lock = threading.RLock()  # one thread at a time continues; close() does not wait for it
        _loaders.add(self)
        self._ranks = self._given or (0, 1)
        with contextlib.suppress(MisuseError):  # the ranks may not be known yet
            self._ranks = self._find_ranks()
        self._steps = self._open().steps()

    # ---- what it is ------------------------------------------------------------------------------------------------

    @property
    def sampler(self) -> Loader:
        """The loader itself: frameworks look for set_epoch() there."""
        return self

    @property
    def batch_sampler(self) -> None:
        """None: batches are made in C. Frameworks look for it before they would replace a sampler."""
        return None

    @property
    def rank(self) -> int:
        """This process's rank, as far as it is known now."""
        return self._look_again()[0]

    @property
    def world(self) -> int:
        """The number of ranks, as far as it is known now."""
        return self._look_again()[1]

    @property
    def epoch(self) -> int:
        """The epoch of the next batch."""
        return self._at[0]

    def __len__(self) -> int:
        """Steps per epoch, the same on every rank."""
        self._look_again()
        with self._lock:
            self._open()
            return self._steps

    def __repr__(self) -> str:
        rank, world = self._look_again()
        return f"millrace.Loader({self.dataset!r}, {self.batch_size}, rank {rank} of {world})"

    def _make_fields(self) -> list[Field]:
        takes = make_fields(self.fields, self.output, self.array, len(self.dataset.dataset.classes), self._texts)
        if not self._views:
            return takes
        return [_of_each_view(take) if name == "image" else take for name, take in zip(self.fields, takes)]

    def _find_ranks(self) -> tuple[int, int]:
        return self._given or find_world(None, None)

    def _look_again(self) -> tuple[int, int]:
        """Rank and world as far as they are known now, without an error: that is for the pass that needs them."""
        if not self._running:
            with contextlib.suppress(MisuseError):
                self._ranks = self._find_ranks()
        return self._ranks

    def _state_at(self, epoch: int, position: int) -> dict[str, Any]:
        self._look_again()
        return {
            "version": 1,
            "digest": self.dataset.dataset.digest,
            "split": self.dataset.name,
            "global_batch": self.batch_size * self._ranks[1],
            **self._order,
            "tail": self._tail,
            "buckets": [one.size if isinstance(one.size, int) else list(one.size) for one in self._buckets] or None,
            "items": self._items.digest(epoch),
            "epoch": epoch,
            "position": position,
        }

    # ---- going through it ------------------------------------------------------------------------------------------

    def _is_open(self, epoch: int) -> bool:
        opened = (self._ranks, epoch if self._items.vary else 0)
        return self._handle is not None and self._process == os.getpid() and self._opened == opened

    def _open(self, epoch: int | None = None) -> _Handle:
        """The C loader of these ranks, at any place of the epoch (default: of the next batch); opened again in a child of fork,
        which has no threads of it, and where an epoch has other items."""
        epoch = self._at[0] if epoch is None else epoch
        if not self._is_open(epoch):
            with self._lock:
                if not self._closed and not self._is_open(epoch):
                    rank, world = self._ranks
                    tail = self._tail if self._tail is not None else TAILS["pad" if world > 1 else "partial"]
                    options = {**self._options, "rank": rank, "world": world, "tail": tail}
                    options["global_batch"] = self.batch_size * world
                    items = self._items.of(epoch)
                    if items is not None:
                        options["items"] = items
                    if self._handle is not None and self._process == os.getpid():
                        self._handle.close()
                    self._handle = self._make(options, items)
                    self._opened = (self._ranks, epoch if self._items.vary else 0)
                    self._process = os.getpid()
                    self._steps = self._handle.steps()
        handle = self._handle
        if self._closed or handle is None:
            if handle is not None and self._process == os.getpid():
                handle.close()  # opened while another thread closed the loader
            raise MisuseError("the loader is closed")
        return handle

    def _make(self, options: dict[str, Any], items: bytes | None) -> _Handle:
        where = self.dataset.dataset._handle, self.dataset.name
        if self._views:
            return SeveralLoader(*where, options, [one._options() for one in self._views])
        if not self._buckets:
            return _millrace.Loader(*where, options)
        if self._divided is None or self._divided[0] != items:
            self._divided = (items, divide(self.dataset, items, self._buckets))
        return BucketLoader(*where, options, self._buckets, self._divided[1])

    def __iter__(self) -> Iterator[Any]:
        """The rest of an epoch after load_state_dict(); otherwise a whole epoch, the next one if one was begun.

        Which epoch it is is decided by the first batch, as with samplers of torch: set_epoch() may come after iter().
        """
        with self._lock:
            if self._closed:
                raise MisuseError("the loader is closed")
            self._pass += 1
            self._running = False
            return self._feed(_Epoch(self))

    def _begin(self) -> _Handle:
        """The C loader where the pass that begins starts. Called with the lock."""
        refuse_worker()
        self._ranks = self._find_ranks()
        if self._at[1] and not self._resumed:
            self._at = (self._at[0] + 1, 0)
        handle = self._open()
        self._resumed = False
        self._running = True
        if handle.cursor() != self._at:
            handle.seek(*self._at)
        return handle

    def set_epoch(self, epoch: int) -> None:
        """The next `for` goes through this epoch, from its start; frameworks call it before each epoch.

        It does nothing where load_state_dict() left the loader within that epoch.
        """
        epoch = check_integer("epoch", epoch, 0)
        with self._lock:
            if not (self._resumed and self._at[0] == epoch):
                self._at = (epoch, 0)
                self._resumed = False

    def _arrays(self, batch: _millrace.Batch | SeveralBatch) -> Any:
        """The fields of a batch as the caller wants them."""
        if self.array == "raw" and not self._as_dict and not self._views and self.fields == ("image", "label"):
            value: Any = batch
        elif self._as_dict:
            value = {name: take(batch) for name, take in zip(self.fields, self._take)}
        else:
            value = tuple([take(batch) for take in self._take])
        return value if self._transform is None else self._transform(value)

    # ---- its state -------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is: plain numbers and texts, valid on any rank and for any world of the same global batch."""
        return self._state_at(*self._at)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next `for` continues where state_dict() was taken: the same samples in the same order and batches.

        Raises:
            MisuseError: the state belongs to another dataset, split, seed, order or global batch; the loader stays where it is.
        """
        if state.get("version") != 1:
            raise MisuseError(f"the state has version {state.get('version')!r}; this millrace reads version 1")
        at = (check_integer("epoch", state.get("epoch"), 0), check_integer("position", state.get("position"), 0))
        own = self._state_at(*at)
        for name in own:
            if name in ("version", "epoch", "position"):
                continue  # what was read above
            theirs = state.get(name)
            if name == "tail" and self._tail is None and theirs in (TAILS["pad"], TAILS["partial"]):
                continue  # the defaults of versions that had one for several ranks and one for a single one
            if theirs != own[name]:
                raise MisuseError(
                    f"the state is of another run: its {name} is {word_of(name, theirs)}, not {word_of(name, own[name])}"
                )
        with self._lock:
            self._open(at[0]).seek(*at)
            self._at = at
            self._resumed = True

    def stats(self) -> dict[str, float]:
        """batches, samples, replaced; seconds waited in next(), reading and decoding (of all threads together)."""
        return self._open(self._opened[1] if self._opened else None).stats()

    def close(self) -> None:
        """Stops the threads; any thread may call it. Batches and arrays that are held stay valid.

        A thread that waits for a batch gets a MisuseError, and so does any later `for`.
        """
        self._closed = True
        if isinstance(self._feed, MapFeed):
            self._feed.close()
        handle, self._handle = self._handle, None
        if handle is not None and self._process == os.getpid():
            handle.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        gone = {"_handle": None, "_pass": 0, "_feed": None, "_take": None, "_lock": None, "_running": False}
        return {**self.__dict__, **gone, "_resumed": self._resumed or self._at[1] > 0}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._take = self._make_fields()
        self._feed = _choose_feed(self._device, self)
        self._process = os.getpid()
        self._lock = threading.RLock()
        _loaders.add(self)


class _Epoch(Iterator[Any]):
    """One pass over a loader; a later pass ends it. Threads that share it take turns; each batch goes to one of them."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._handle: _Handle | None = None
        self._pass = loader._pass
        self._epoch = self._position = self._step = self._left = 0

    def __next__(self) -> Any:
        with self._loader._lock:
            batch, self._loader._at = self.fetch()
        return self._loader._arrays(batch)

    def fetch(self) -> tuple[_millrace.Batch | SeveralBatch, tuple[int, int]]:
        """The next batch as the extension gives it, and where the loader is after it. Called with the loader's lock."""
        loader = self._loader
        if loader._pass != self._pass:
            raise MisuseError("a later pass over this loader has begun; use a loader for each")
        if self._handle is None:
            self._handle = loader._begin()
            self._epoch, self._position = loader._at
            self._step = loader.batch_size * loader._ranks[1]
            self._left = loader._steps - self._position // self._step
        if self._left <= 0:
            raise StopIteration
        batch = self._handle.__next__()
        self._left -= 1
        self._position += self._step
        return batch, (self._epoch, self._position) if self._left else (self._epoch + 1, 0)

    def __length_hint__(self) -> int:
        return max(self._left if self._handle is not None else len(self._loader), 0)


def _of_each_view(take: Field) -> Field:
    return lambda batch: [take(one) for one in batch.views]


def _as_is(epoch: _Epoch) -> Iterator[Any]:
    return epoch


def _choose_feed(device: Any, loader: Loader) -> Callable[[_Epoch], Iterator[Any]]:
    if device is not None and loader._views:
        raise MisuseError("device: batches of several views are moved to a device by the caller; leave one of them out")
    if loader._map is not None:
        if device is not None:
            raise MisuseError("device: what map returns is moved to a device by the caller; leave one of them out")
        return MapFeed(loader, loader._map, loader._map_threads, loader._collate)
    if loader._collate is not None:
        raise MisuseError("collate: joins what map returns; pass map= as well")
    if device is None:
        return _as_is
    from ._device import DeviceFeed

    return DeviceFeed(device, loader)


