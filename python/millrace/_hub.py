"""Datasets of Hugging Face's library `datasets` as samples for write().

Invariant: no column is lost: what is neither image, label nor object is in the meta; an image that is a file stays its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ._errors import MisuseError

__all__ = ["hub_classes", "hub_samples", "is_hub_dataset"]


def is_hub_dataset(samples: Any) -> bool:
    """Is it a Dataset, an IterableDataset, or a dict of them by split?"""
    first = next(iter(samples.values()), None) if isinstance(samples, Mapping) else samples
    return hasattr(first, "features") and hasattr(first, "cast_column")


def _splits(dataset: Any) -> dict[str, Any]:
    return dict(dataset) if isinstance(dataset, Mapping) else {str(dataset.split or "train"): dataset}


def _kind(feature: Any) -> str:
    return type(feature).__name__


def _item(feature: Any) -> Any:
    """What a list feature is a list of; another feature itself."""
    if isinstance(feature, list):
        return feature[0]
    return feature.feature if hasattr(feature, "feature") else feature


def _features(dataset: Any) -> dict[str, Any]:
    if dataset.features is None:
        raise MisuseError("write: the dataset does not know its features; pass dataset.cast(features)")
    return dict(dataset.features)


def _image_column(features: Mapping[str, Any]) -> str:
    images = [name for name, feature in features.items() if _kind(feature) == "Image"]
    if len(images) == 1:
        return images[0]
    if not images:
        raise MisuseError(f"write: no column of the dataset is an Image; it has {', '.join(features)}; use cast_column(NAME, datasets.Image())")
    raise MisuseError(f"write: the dataset has several images a row ({', '.join(images)}); keep one with remove_columns()")


def _label_column(features: Mapping[str, Any]) -> str | None:
    """The column of classes, of one or several a sample; "label" may also be of plain numbers or texts."""
    columns = [name for name, feature in features.items() if _kind(_item(feature)) == "ClassLabel"]
    for name in ("label", "labels"):
        if name in columns or (name in features and not columns and _kind(_item(features[name])) == "Value"):
            return name
    if len(columns) > 1:
        raise MisuseError(f"write: which column is the label: {', '.join(columns)}? rename_column(NAME, 'label') says so")
    return columns[0] if columns else None


def _objects(features: Mapping[str, Any]) -> tuple[Any, str] | None:
    """The feature of the objects' classes and its name, where the column "objects" has boxes, as the hub's documents show it."""
    members = features.get("objects")
    if isinstance(members, list):
        members = members[0]
    members = members if isinstance(members, Mapping) else getattr(members, "feature", None)
    if not isinstance(members, Mapping) or "bbox" not in members:
        return None
    for name in ("category", "categories", "label", "labels"):
        if name in members:
            return _item(members[name]), name
    return None, ""


def hub_classes(dataset: Any) -> list[str] | None:
    """The names of the classes: of labels, else of objects; None: it has none."""
    features = _features(next(iter(_splits(dataset).values())))
    label, objects = _label_column(features), _objects(features)
    named: list[Any] = [_item(features[label]) if label else None, objects[0] if objects else None]
    for feature in named:
        if _kind(feature) == "ClassLabel":
            return list(feature.names)
    return None


def hub_samples(dataset: Any) -> Iterator[dict[str, Any]]:
    """The rows as Writer.add() takes them."""
    for split, rows in _splits(dataset).items():
        features = _features(rows)
        image, label, objects = _image_column(features), _label_column(features), _objects(features)
        feature = features[image]
        for row in rows.cast_column(image, type(feature)(decode=False)):
            sample: dict[str, Any] = {"split": split, **_file(row.pop(image), image)}
            if label is not None:
                sample.update(_labels(row.pop(label), features[label]))
            if objects is not None and row["objects"] is not None:
                sample["objects"] = _read_objects(row["objects"], *objects)
            yield {**sample, "meta": {name: _plain(value) for name, value in row.items()}}


def _file(value: Any, column: str) -> dict[str, Any]:
    """Its bytes, and its path as the source."""
    if value is None:
        raise MisuseError(f"write: a row has no {column}; filter() such rows out")
    data, path = value.get("bytes"), value.get("path")
    if data is None:
        with open(path, "rb") as file:
            data = file.read()
    return {"image": data, **({"source": path} if path else {})}


def _name(feature: Any, value: Any) -> Any:
    """A class by name where it has one; -1 stands for none on the hub."""
    named = _kind(feature) == "ClassLabel" and isinstance(value, int)
    return (feature.int2str(value) if value >= 0 else None) if named else value


def _labels(value: Any, feature: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"labels": [_name(_item(feature), item) for item in value]}
    return {"label": _name(feature, value)}


def _read_objects(value: Any, feature: Any, classes: str) -> list[dict[str, Any]]:
    lists = {name: [item.get(name) for item in value] for name in ("bbox", classes)} if isinstance(value, list) else value
    boxes = lists["bbox"]
    labels = [_name(feature, item) for item in lists[classes]] if classes else [None] * len(boxes)
    if len(labels) != len(boxes):
        raise MisuseError(f"write: objects: {len(boxes)} boxes, but {len(labels)} of {classes}")
    return [{"box": box, **({} if label is None else {"label": label})} for box, label in zip(boxes, labels)]


def _plain(value: Any) -> Any:
    """As JSON has it: dates as their text."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else value
