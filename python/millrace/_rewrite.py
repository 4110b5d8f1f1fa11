"""What a sample shows and says, as text that `ingest` takes back as it was: the metas of millrace's own datasets.

Invariant: class numbers are those of the dataset that is written; an object's class is found by its name where it has one.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ._errors import MisuseError

__all__ = ["Meta", "Object", "class_number", "compose_meta", "path_text"]

# Members that ingest writes itself, from the sample's file and label.
_OWN = ("source", "label", "class", "image_of", "unannotated", "labels", "objects")
_LIMIT = 1_000_000.0  # pixels


class Meta(dict[str, Any]):
    """A sample's meta, as in the dataset: shards/FORMAT.md, "The meta object". Given to write(), it comes back whole."""


Object = Mapping[str, Any]


def path_text(name: str) -> str:
    """A class name as in metas and manifests."""
    return name.replace("\\", "\\\\")


def _number(value: Any) -> int | float:
    """A length as in metas: thousandths of a pixel, never with an exponent."""
    number = round(float(value), 3)
    if not math.isfinite(number) or abs(number) > _LIMIT:
        raise ValueError
    return int(number) if number.is_integer() else number


def _numbers(value: Iterable[Any], count: int | None = None) -> list[int | float]:
    numbers = [_number(item) for item in value]
    if count is not None and len(numbers) != count:
        raise ValueError
    return numbers


def _box(value: Iterable[Any]) -> list[int | float]:
    """x, y, width, height; two corners in the wrong order would have a negative side."""
    numbers = _numbers(value, 4)
    if min(numbers[2:]) < 0:
        raise ValueError
    return numbers


def _polygon(value: Iterable[Any]) -> list[int | float]:
    """x, y, x, y ..., or pairs."""
    items = list(value)
    numbers = _numbers(items if not items or not hasattr(items[0], "__len__") else [n for pair in items for n in pair])
    if len(numbers) < 6 or len(numbers) % 2:
        raise ValueError
    return numbers


def _keypoint(value: Iterable[Any]) -> list[int | float]:
    x, y, visibility = _numbers(value, 3)
    if visibility not in (0, 1, 2):
        raise ValueError
    return [x, y, visibility]


def _id(value: Any) -> int | str:
    return value if isinstance(value, str) else operator.index(value)


_MEMBERS: dict[str, Callable[[Any], Any]] = {
    "box": _box,
    "polygons": lambda value: [_polygon(polygon) for polygon in value],
    "oriented_box": lambda value: _numbers(value, 8),
    "keypoints": lambda value: [_keypoint(point) for point in value],
    "crowd": bool,
    "id": _id,
}


def class_number(value: Any, classes: Mapping[str, int] | None, what: str) -> int:
    """The number of a class that is given by name or number."""
    if classes is None:
        raise MisuseError(f"{what}: of which classes? pass classes=, the names in the order of their numbers")
    try:
        number = classes.get(value, -1) if isinstance(value, str) else operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number < len(classes):
        raise MisuseError(f"{what}: {value!r} is not one of the {len(classes)} classes")
    return number


def _object(given: Object, classes: Mapping[str, int] | None, names: Sequence[str]) -> dict[str, Any]:
    """An object as in metas; `given` may have its class by name or number, as "label", "class" or both."""
    if not isinstance(given, Mapping):
        raise MisuseError(f"objects: {given!r} is not a dict")
    out: dict[str, Any] = {}
    unknown = given.keys() - _MEMBERS.keys() - {"label", "class"}
    if unknown:
        raise MisuseError(f"objects: {sorted(unknown)[0]!r} is not one of class, label, {', '.join(_MEMBERS)}")
    label = given["class"] if "class" in given else given.get("label")
    if label is not None and label != -1:
        out["label"] = class_number(_unescaped(label) if "class" in given else label, classes, "objects")
        if len(path_text(names[out["label"]]).encode()) <= 255:
            out["class"] = path_text(names[out["label"]])
    for name, take in _MEMBERS.items():
        if name not in given or (name == "crowd" and not given[name]):
            continue
        try:
            out[name] = take(given[name])
        except (TypeError, ValueError, OverflowError):
            raise MisuseError(f"objects: {name}: {given[name]!r} is not valid; shards/FORMAT.md has its form") from None
    return out


def _unescaped(name: Any) -> Any:
    return name.replace("\\\\", "\\") if isinstance(name, str) else name


def _like_ours(objects: Any) -> bool:
    """Whether a column "objects" has the form of a millrace meta, not that of another tool."""
    known = _MEMBERS.keys() | {"label", "class"}
    return isinstance(objects, list) and all(isinstance(item, dict) and item.keys() <= known for item in objects)


def _labels_of(meta: Meta) -> list[int | str] | None:
    """By name where the meta has the names."""
    numbers, names = meta.get("labels"), meta.get("classes")
    if isinstance(numbers, list) and isinstance(names, list) and len(names) == len(numbers):
        return [_unescaped(name) for name in names]
    return numbers


def compose_meta(
    meta: Mapping[str, Any] | None,
    objects: Iterable[Object] | None,
    labels: Iterable[int | str] | None,
    source: str | None,
    classes: Mapping[str, int] | None,
) -> str | None:
    """The text of a sample's .json; None: there is nothing to say."""
    members: dict[str, Any] = {}
    if isinstance(meta, Meta):
        members = {name: value for name, value in meta.items() if name not in _OWN}
        objects = meta.get("objects") if objects is None else objects
        labels = _labels_of(meta) if labels is None else labels
        origin = meta.get("source") if source is None else source
        columns = members.get("columns", {})
        if origin is not None and isinstance(columns, dict):
            members["columns"] = {**columns, "source": columns.get("source", origin) if source is None else source}
    else:
        columns = {**(meta or {}), **({} if source is None else {"source": source})}
        if objects is None and _like_ours(columns.get("objects")):
            objects = columns.pop("objects")
        if columns:
            members["columns"] = columns
    own: dict[str, Any] = {"source": "-"}  # first, and then what ingest reads back: it knows a meta of its own by that
    if isinstance(meta, Meta) and meta.get("unannotated") is True:
        own["unannotated"] = True
    if labels is not None:
        own["labels"] = sorted({class_number(label, classes, "labels") for label in labels})
    if objects is not None:
        names = list(classes or ())
        members["objects"] = [_object(item, classes, names) for item in objects]
    try:
        if list(own) == ["source"] and list(members) in ([], ["columns"]):
            return json.dumps(members["columns"], ensure_ascii=False, allow_nan=False) if members else None
        return json.dumps({**own, **members}, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise MisuseError(f"meta: {error}") from None
