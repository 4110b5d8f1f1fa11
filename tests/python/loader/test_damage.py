"""Datasets with one byte changed or one file exchanged: what Python gets is right, or an exception names file and remedy."""

import contextlib
import hashlib
import pathlib
import random
import shutil
from typing import Any

import pytest

import millrace

TRIALS = 40
WAYS = ("`millrace reindex`", "`millrace verify", "ingest again")


def seen(dataset: millrace.Dataset) -> dict[Any, str]:
    """What a dataset gives, piece by piece, up to what it refuses."""
    out: dict[Any, str] = {"classes": str(dataset.classes)}
    for name, split in dataset.items():
        for n in range(len(split)):
            with refusals():
                out[name, n] = hashlib.sha256(repr(split[n]).encode()).hexdigest()
        with refusals():
            out[name, "labels"] = str(split.labels.tolist())
    with refusals():
        for step, (pictures, labels, *_) in enumerate(millrace.Loader(dataset["train"], 8, output="uint8", array="numpy")):
            out["loader", step] = hashlib.sha256(pictures.tobytes() + labels.tobytes()).hexdigest()
    return out


@contextlib.contextmanager
def refusals() -> Any:
    try:
        yield
    except (millrace.BadDataError, millrace.BadSampleError) as error:
        said = str(error)
        assert any(file in said for file in (".idx", ".mdb", "manifest.json")) and any(way in said for way in WAYS), said


def damage(chance: random.Random, folder: pathlib.Path) -> str:
    files = sorted(file for file in folder.iterdir() if file.name != "report.json")
    file = chance.choice(files)
    if chance.random() < 0.3:
        other = chance.choice([other for other in files if other.suffix == file.suffix])
        file.write_bytes(other.read_bytes())
        return f"{file.name} is {other.name}"
    data = bytearray(file.read_bytes())
    at = chance.randrange(len(data))
    data[at] ^= 1 << chance.randrange(8)
    file.write_bytes(data)
    return f"{file.name}: byte {at}"


def test_nothing_is_delivered_in_silence(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    chance, want = random.Random(1), seen(dataset)
    for trial in range(TRIALS):
        folder = tmp_path / str(trial)
        shutil.copytree(dataset.path, folder)
        what = damage(chance, folder)
        with refusals():
            for key, value in seen(millrace.Dataset(folder)).items():
                assert value == want[key], (what, key)


@pytest.mark.parametrize("options", [{}, {"views": [millrace.Crop(8), millrace.Square(8)]}, {"map": dict, "collate": list}])
def test_fields_of_a_masked_sample(damaged: millrace.Dataset, options: dict[str, Any]) -> None:
    fields = ["sample", "weight", "meta", "captions", "labels", "label"]
    common: dict[str, Any] = {"fields": fields, "array": "numpy", "as_dict": True, **options}
    view: dict[str, Any] = {} if "views" in options else {"view": millrace.Square(8)}
    seen = []
    for batch in damaged.loader("train", 8, on_bad="mask", **common, **view):
        rows = batch if isinstance(batch, list) else [dict(zip(fields, row)) for row in zip(*(batch[name] for name in fields))]
        for row in rows:
            masked = row["sample"] == 40
            seen.append(int(row["sample"]))
            assert row["captions"] == [] and row["weight"] == (0 if masked else 1) and bool(row["meta"]) != masked
            assert row["labels"].sum() == (0 if masked else 1)
    assert seen == list(range(84))
    with pytest.raises(millrace.BadSampleError, match="sample 40"):
        list(damaged.loader("train", 8, **common, **view))
