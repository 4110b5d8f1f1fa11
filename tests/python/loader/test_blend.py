"""mixup and cutmix: the same pairs and shares for any ranks and on resume, pixels by a plain reference."""

from typing import Any

import numpy
import pytest

import millrace

FIELDS = ("image", "label", "sample", "share", "other", "other_label", "weight")


def batches(dataset: millrace.Dataset, size: int, **options: Any) -> list[dict[str, Any]]:
    common: dict[str, Any] = {"array": "numpy", "as_dict": True, "fields": FIELDS, "view": millrace.Crop(24), "shuffle": True, "seed": 5}
    return list(dataset.loader("train", size, **(common | options)))


def joined(found: list[dict[str, Any]], name: str) -> Any:
    return numpy.concatenate([batch[name] for batch in found])


@pytest.mark.parametrize("output", ["float32", "bfloat16", "uint8"])
@pytest.mark.parametrize(("mixup", "cutmix"), [(0.4, 0.0), (0.0, 1.0), (0.3, 0.7)])
def test_pixels_are_the_references(dataset: millrace.Dataset, output: Any, mixup: float, cutmix: float) -> None:
    if output == "bfloat16":
        pytest.importorskip("ml_dtypes")
    plain = batches(dataset, 12, output=output)
    mixed = batches(dataset, 12, output=output, mixup=mixup, cutmix=cutmix)
    kinds = set()
    for before, after in zip(plain, mixed, strict=True):
        x = before["image"].astype("float64")
        y = after["image"].astype("float64")
        for i in range(12):
            j, share = i ^ 1, float(after["share"][i])
            assert after["other"][i] == before["sample"][j] and after["other_label"][i] == before["label"][j]
            assert after["label"][i] == before["label"][i] and after["share"][i] == after["share"][j]
            blended = numpy.abs(y[i] - (share * x[i] + (1 - share) * x[j])).max() < (0.51 if output == "uint8" else 0.01)
            axis = -1 if output == "uint8" else 0
            own, theirs = (y[i] == x[i]).all(axis=axis), (y[i] == x[j]).all(axis=axis)
            if blended and not (own | theirs).all():
                kinds.add("mixup")
                continue
            kinds.add("cutmix")
            rows, columns = numpy.nonzero(~own)
            assert (own | theirs).all()
            if len(rows):  # a box, of the rest of the area but for pixels that agree anyway
                area = (rows.max() - rows.min() + 1) * (columns.max() - columns.min() + 1)
                assert abs(share - (1 - area / 24**2)) < 0.1
    expected = {name for name, alpha in (("mixup", mixup), ("cutmix", cutmix)) if alpha}
    assert expected <= kinds


@pytest.mark.parametrize("world", [2, 3])
def test_any_number_of_ranks(dataset: millrace.Dataset, world: int) -> None:
    options: dict[str, Any] = {"mixup": 0.2, "cutmix": 1.0, "tail": "pad"}
    whole = batches(dataset, 12, rank=0, world=1, **options)
    ranks = [batches(dataset, 12 // world, rank=rank, world=world, **options) for rank in range(world)]
    for step, expected in enumerate(whole):
        for name in FIELDS:
            assert numpy.array_equal(joined([rank[step] for rank in ranks], name), expected[name]), name


def test_resume_and_epochs(dataset: millrace.Dataset) -> None:
    options: dict[str, Any] = {
        "array": "numpy", "fields": FIELDS, "view": millrace.Crop(16), "shuffle": True, "mixup": 0.2, "cutmix": 1.0,
    }  # fmt: skip
    loader = dataset.loader("train", 6, **options)
    first = [tuple(value.copy() for value in batch) for batch in loader]
    second = [tuple(value.copy() for value in batch) for batch in loader]
    assert not numpy.array_equal(first[0][3], second[0][3])
    other = dataset.loader("train", 6, **options)
    it = iter(other)
    for _ in range(4):
        next(it)
    state = other.state_dict()
    again = dataset.loader("train", 6, **options)
    again.load_state_dict(state)
    for found, expected in zip(again, first[4:], strict=True):
        assert all(numpy.array_equal(a, b) for a, b in zip(found, expected))


def test_shares_are_beta(dataset: millrace.Dataset) -> None:
    items = list(range(84)) * 100
    for alpha in (0.2, 1.0, 4.0):
        loader = dataset.loader("train", 84, items=items, view=millrace.Square(8), array="numpy", fields=("share",), as_dict=True, mixup=alpha)
        shares = numpy.concatenate([batch["share"] for batch in loader])[::2]
        assert len(shares) == 4200 and (0 <= shares).all() and (shares <= 1).all()
        assert abs(shares.mean() - 0.5) < 5 * (0.25 / (2 * alpha + 1)) ** 0.5 / 4200**0.5  # five standard errors
        assert abs(shares.var() - 0.25 / (2 * alpha + 1)) < 0.02


def test_what_cannot_be(dataset: millrace.Dataset) -> None:
    with pytest.raises(millrace.MisuseError, match="must be even"):
        dataset.loader("train", 5, mixup=0.2)
    with pytest.raises(millrace.MisuseError, match="mixup"):
        dataset.loader("train", 4, mixup=-1)
    with pytest.raises(millrace.MisuseError, match="mix pixels"):
        dataset.loader("train", 4, cutmix=1, output="encoded")
    with pytest.raises(millrace.MisuseError, match="partial"):
        dataset.loader("train", 4, cutmix=1, rank=0, world=2, tail="partial")
