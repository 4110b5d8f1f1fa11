"""Selections of a split, tables, and what notebooks show."""

import pathlib
import pickle
import re
from typing import Any

import numpy
import pytest

import millrace


def test_select_is_the_samples(dataset: millrace.Dataset) -> None:
    split = dataset["train"]
    rng = numpy.random.default_rng(7)
    numbers = rng.integers(0, 84, 30)
    part = split.select(numbers)
    assert len(part) == 30 and list(part.numbers) == list(numbers) and list(split.numbers) == list(range(84))
    assert (part.labels == split.labels[numbers]).all()
    for i in (0, 7, -1):
        assert part[i]["image"] == split[int(numbers[i])]["image"] and part.meta(i) == split.meta(int(numbers[i]))
        assert (part.array(i, millrace.Square(16)) == split.array(int(numbers[i]), millrace.Square(16))).all()
    assert [sample["meta"]["source"] for sample in part[2:5]] == [split.meta(int(n))["source"] for n in numbers[2:5]]
    assert list(part.select(slice(1, 30, 3)).numbers) == list(numbers[1::3])
    assert list(part.select(part.labels == part.labels[0]).numbers) == [n for n in numbers if split.labels[n] == part.labels[0]]
    again = pickle.loads(pickle.dumps(part))
    assert list(again.numbers) == list(numbers) and again[3]["image"] == part[3]["image"]
    assert part.with_transform(lambda sample: sample["label"])[0] == part.labels[0]
    with pytest.raises(IndexError):
        part[30]
    with pytest.raises(millrace.MisuseError, match="no sample 84"):
        split.select([84])
    with pytest.raises(millrace.MisuseError, match="mask of 3"):
        split.select([True, False, True])


def test_filter_reads_no_image(dataset: millrace.Dataset) -> None:
    seen: list[dict[str, Any]] = []

    def keep(sample: Any) -> bool:
        seen.append(sample)
        return sample["label"] in (2, 5)

    part = dataset["train"].filter(keep)
    assert len(seen) == 84 and all("image" not in sample for sample in seen)
    assert set(part.labels) == {2, 5} and len(part) == sum(label in (2, 5) for label in dataset["train"].labels)


@pytest.mark.parametrize("world", [1, 2])
def test_loaders_of_selections(dataset: millrace.Dataset, world: int) -> None:
    numbers = list(range(3, 43))
    part = dataset["train"].select(numbers)
    options: dict[str, Any] = {"shuffle": True, "seed": 3, "array": "numpy", "fields": ("sample",), "view": millrace.Square(8), "world": world}
    for rank in range(world):
        found = [n for batch in millrace.Loader(part, 4, rank=rank, **options) for n in batch[0]]
        same = [n for batch in dataset.loader("train", 4, items=numbers, rank=rank, **options) for n in batch[0]]
        assert found == same and set(found) <= set(numbers)
    nested = [n for batch in millrace.Loader(part, 4, items=[0, 39], **(options | {"world": 1, "rank": 0})) for n in batch[0]]
    assert sorted(nested) == [3, 42]
    with pytest.raises(millrace.MisuseError, match="no sample 40"):
        millrace.Loader(part, 4, items=[40])
    state = millrace.Loader(part, 4).state_dict()
    with pytest.raises(millrace.MisuseError, match="items"):
        dataset.loader("train", 4).load_state_dict(state)


def test_a_selection_becomes_a_view(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    part = dataset["train"].filter(lambda sample: sample["label"] == 4)
    view = millrace.view(tmp_path / "part.view", dataset.path + ":train", samples=part.numbers)
    assert [sample["image"] for sample in view["train"]] == [sample["image"] for sample in part]


def test_tables(dataset: millrace.Dataset) -> None:
    part = dataset["val"].select([5, 1])
    expected = [part.meta(0)["source"], part.meta(1)["source"]]
    columns = part._columns(True)
    assert columns["sample"] == [5, 1] and columns["source"] == expected and columns["image"][0] == part[0]["image"]
    assert columns["class"][0] == dataset.classes[int(part.labels[0])]
    pandas = pytest.importorskip("pandas")
    frame = part.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame["source"]) == expected and "image" not in frame
    pytest.importorskip("pyarrow")
    assert part.to_arrow(images=True).column("image")[1].as_py() == part[1]["image"]


def test_what_notebooks_show(dataset: millrace.Dataset, damaged: millrace.Dataset) -> None:
    page = dataset._repr_html_()
    assert dataset.digest in page and "<td>train<td>84" in page and page.count("data:image/png;base64,") == 8
    assert dataset["val"].select([1, 2])._repr_html_().count("<img") == 2
    assert "differs from what was ingested" in damaged["train"].select([40])._repr_html_()
    assert not re.search(r"https?:", page)
