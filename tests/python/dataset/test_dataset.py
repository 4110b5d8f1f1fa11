"""Dataset and Split: what is in a dataset, and single samples."""

import json
import os
import pathlib
import pickle
import shutil
import threading
from typing import Any

import numpy as np
import pytest

import millrace


def test_a_dataset_is_a_mapping_of_splits(dataset: millrace.Dataset) -> None:
    assert list(dataset) == ["train", "val"] and len(dataset) == 2 and "val" in dataset and "test" not in dataset
    assert dataset.layout == "imagenette" and len(dataset.classes) == 10 and len(dataset.digest) == 64
    assert dataset.manifest["layout"] == "imagenette"
    assert repr(dataset) == f"millrace.Dataset({dataset.path!r}, train: 84, val: 36, 10 classes)"
    with pytest.raises(KeyError, match="no split 'test'; it has train, val"):
        dataset["test"]


def test_expect_insists_on_the_digest(dataset: millrace.Dataset) -> None:
    assert millrace.Dataset(dataset.path, expect=dataset.digest) == dataset
    with pytest.raises(millrace.MisuseError, match="its digest is"):
        millrace.Dataset(dataset.path, expect="0" * 64)


def images(dataset: millrace.Dataset) -> list[bytes]:
    loader = millrace.Loader(dataset["train"], 8, shuffle=True, output="encoded", array="numpy")
    return [image.tobytes() for batch in loader for image in batch[0]]


def test_copies_on_a_local_disk_change_nothing(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    staged = millrace.Dataset(dataset.path, local=tmp_path / "copies", local_size=1 << 30)
    plain = images(dataset)
    for again in (staged, pickle.loads(pickle.dumps(staged))):
        assert images(again) == plain
        assert again.local_remark is None
    with pytest.raises(millrace.MisuseError, match="is inside the dataset"):
        millrace.Dataset(dataset.path, local=pathlib.Path(dataset.path) / "copies")
    (tmp_path / "file").touch()
    broken = millrace.Dataset(dataset.path, local=tmp_path / "file" / "copies")
    assert images(broken) == plain
    assert "shards are read from the dataset" in (broken.local_remark or "")


def test_a_missing_dataset_is_a_value_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError) as caught:
        millrace.Dataset(tmp_path / "none")
    assert isinstance(caught.value, millrace.MisuseError) and caught.value.status == -4
    assert caught.value.where.endswith("none")


def test_a_dataset_of_a_later_format_is_not_damaged(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    shutil.copytree(dataset.path, tmp_path / "later")
    manifest = tmp_path / "later" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format": 1,', '"format": 3, "needs": "7.12",', 1))
    words = "later: manifest.json: its format 3 is newer and needs millrace 7.12"
    with pytest.raises(millrace.MisuseError, match=words):
        millrace.Dataset(tmp_path / "later")
    with pytest.raises(millrace.MisuseError, match=words):
        millrace.verify(tmp_path / "later")


def test_an_index_of_another_dataset_is_refused(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    shutil.copytree(dataset.path, tmp_path / "mixed")
    index = tmp_path / "mixed" / "train-00000.idx"
    data = bytearray(index.read_bytes())
    data[64 + 48] ^= 1  # a label
    index.write_bytes(data)
    mixed = millrace.Dataset(tmp_path / "mixed")
    for read in (lambda: mixed["train"][0], lambda: mixed["train"].labels, lambda: images(mixed)):
        with pytest.raises(millrace.BadDataError, match="train-00000.idx: does not match the digest in the manifest"):
            read()
    assert len(mixed["val"][0]["image"]) > 0


def test_samples_are_the_files_of_the_source(made: pathlib.Path, dataset: millrace.Dataset) -> None:
    root = next((made / "source").rglob("train")).parent
    for split in dataset.values():
        for sample in split:
            assert sample["image"] == (root / sample["meta"]["source"]).read_bytes()
            assert dataset.classes[sample["label"]] == sample["meta"]["class"]


def test_indexes(dataset: millrace.Dataset) -> None:
    split = dataset["train"]
    assert split[-1] == split[83] and split[np.int64(5)] == split[5]
    assert split[2:8:3] == [split[2], split[5]] and split[90:] == []
    assert split.__getitems__([3, -1]) == [split[3], split[83]]
    for wrong in (84, -85):
        with pytest.raises(IndexError, match="the split has 84"):
            split[wrong]
    odd: Any = ("3", 1.0, [1, 2], None)
    for wrong in odd:
        with pytest.raises(TypeError, match=r"is not a sample's number; select\(\) takes several"):
            split[wrong]


def test_labels_and_metas_read_no_image(damaged: millrace.Dataset) -> None:
    split = damaged["train"]
    metas = [split.meta(i) for i in range(len(split))]
    assert split.labels.dtype == np.int64 and split.labels.tolist() == [meta["label"] for meta in metas]


def test_array_decodes_as_the_loader_does(dataset: millrace.Dataset) -> None:
    split = dataset["val"]
    for view in (millrace.Square(48), millrace.Center(40, resize=44), millrace.Crop(32)):
        loader = millrace.Loader(split, 36, view=view, output="uint8", array="numpy", threads=0)
        ((images, _),) = loader
        for i in (35, 0, 7):
            assert (split.array(i, view) == images[i]).all()
    assert split.array(-1).shape == (224, 224, 3)
    kept = [split.array(i, millrace.Square(16)) for i in range(36)]
    assert all((kept[i] == split.array(i, millrace.Square(16))).all() for i in range(36))


def test_transform(dataset: millrace.Dataset) -> None:
    split = dataset["train"].with_transform(lambda sample: sample["label"])
    assert split[:3] == dataset["train"].labels[:3].tolist()


def test_pickles_are_the_path(dataset: millrace.Dataset) -> None:
    split = dataset["train"]
    split.array(0)
    assert len(pickle.dumps(split)) < 1000
    again = pickle.loads(pickle.dumps(split))
    assert again[3] == split[3] and again.dataset == dataset and (again.array(1) == split.array(1)).all()


def test_a_pickle_of_another_dataset_is_refused(made: pathlib.Path, tmp_path: pathlib.Path) -> None:
    kept = pickle.dumps(millrace.ingest(made / "source", to=tmp_path / "d"))
    millrace.ingest(made / "source", to=tmp_path / "d", shuffle=1, force=True)
    with pytest.raises(millrace.BadDataError, match="not the dataset that was pickled"):
        pickle.loads(kept)


def test_threads_share_a_split(dataset: millrace.Dataset) -> None:
    split = dataset["train"]
    wrong: list[int] = []

    def read(first: int) -> None:
        wrong.extend(i for i in range(first, 84, 4) if split[i]["meta"] != split.meta(i) or split.array(i).size == 0)

    threads = [threading.Thread(target=read, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_damage_is_named(damaged: millrace.Dataset) -> None:
    split = damaged["train"]
    found: list[tuple[int, millrace.BadSampleError]] = []
    for i in range(len(split)):
        try:
            split[i]
        except millrace.BadSampleError as error:
            found.append((i, error))
    ((at, bad),) = found
    assert at == 40 and (bad.shard, bad.sample) == ("train-00000", 40) and bad.status == -1
    with pytest.raises(millrace.BadSampleError) as caught:
        split.array(40)
    assert caught.value.sample == 40 and caught.value.source == split.meta(40)["source"]


def test_a_dataset_whose_manifest_is_cut_is_bad_data(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(dataset.manifest)[:-20])
    with pytest.raises(millrace.BadDataError):
        millrace.Dataset(tmp_path)


def test_the_working_directory_may_change(dataset: millrace.Dataset, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Hydra changes it, and workers of Ray have another."""
    folder, name = os.path.split(dataset.path)
    monkeypatch.chdir(folder)
    relative = millrace.Dataset(name)
    assert relative.path == name
    monkeypatch.chdir(tmp_path)
    assert pickle.loads(pickle.dumps(relative))["train"][0] == dataset["train"][0]
    assert relative.manifest == dataset.manifest and relative.report == dataset.report
