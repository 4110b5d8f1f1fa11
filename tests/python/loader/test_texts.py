"""Fields of a batch that come from metas: captions, and the classes of samples with several labels."""

import json
import pathlib
import pickle
from typing import Any

import numpy as np
import pytest

import millrace

VIEW: dict[str, Any] = {"view": millrace.Square(8), "output": "uint8"}


def make(folder: pathlib.Path, layout: str, *words: str) -> millrace.Dataset:
    assert millrace.cli("sample", str(folder / layout), "--layout", layout, *words, "--images", "30", "-q") == 0
    return millrace.ingest(folder / layout, to=folder / f"{layout}.d")


def test_captions(tmp_path: pathlib.Path) -> None:
    coco = make(tmp_path, "coco")
    for captions, metas in coco.loader("train", 5, fields=["captions", "meta"], **VIEW):
        assert captions == [[c["caption"] for c in meta["captions"]] for meta in metas]
        assert any(captions)
    contest = make(tmp_path, "newyorker")
    captions, metas = next(iter(contest.loader("train", 4, fields=["captions", "meta"], **VIEW)))
    assert captions == [[meta["columns"]["image_description"]] for meta in metas]
    options: dict[str, Any] = {**VIEW, "fields": ["captions", "meta"], "text_column": "caption_choices"}
    captions, metas = next(iter(contest.loader("train", 4, **options)))
    assert captions == [meta["columns"]["caption_choices"] for meta in metas]


def test_none(dataset: millrace.Dataset) -> None:
    (captions,) = next(iter(dataset.loader("train", 4, fields=["captions"], **VIEW)))
    assert captions == [[]] * 4


@pytest.mark.parametrize("array", ["numpy", "torch", "jax", "raw"])
def test_several_labels(dataset: millrace.Dataset, tmp_path: pathlib.Path, array: Any) -> None:
    if array in ("torch", "jax"):
        pytest.importorskip(array)
    image = dataset["train"][0]["image"]
    given: list[Any] = [{"labels": [2, 0]}, {"labels": []}, {"label": 1}, {}]
    samples: list[Any] = [{"split": "a", "image": image, **labels} for labels in given]
    written = millrace.write(samples, tmp_path / "d", classes=["x", "y", "z"])
    labels = next(iter(written.loader("a", 4, fields=["labels", "label"], array=array, **VIEW)))[0]
    if array == "raw":
        assert labels.shape == (4, 3) and labels.format == "f"
        labels = labels.tolist()
    found = np.asarray(labels)
    assert found.shape == (4, 3) and found[:3].tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]] and np.isnan(found[3]).all()


def test_of_a_roboflow_export(tmp_path: pathlib.Path) -> None:
    signs = make(tmp_path, "roboflow", "--variant", "multi-class")
    rows = np.concatenate([labels for labels, in signs.loader("train", 4, fields=["labels"], array="numpy", **VIEW)])
    assert rows.shape == (len(signs["train"]), len(signs.classes)) and rows.dtype == np.float32
    assert [np.flatnonzero(row).tolist() for row in rows] == [signs["train"].meta(i)["labels"] for i in range(len(rows))]


# ---- token ids ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def coco(tmp_path_factory: pytest.TempPathFactory) -> millrace.Dataset:
    return make(tmp_path_factory.mktemp("coco"), "coco")


def learn(dataset: millrace.Dataset, folder: pathlib.Path, size: int) -> millrace.Tokenizer:
    assert millrace.cli("tokenizer", dataset.path, "--size", str(size), "-o", str(folder / "tokenizer.json"), "-q") == 0
    return millrace.Tokenizer(folder)


def test_ids_of_texts(coco: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    tokenizer = learn(coco, tmp_path, 261)  # the bytes alone, so that ids are known
    vocabulary = json.loads((tmp_path / "tokenizer.json").read_text())["model"]["vocab"]
    ids = tokenizer(["a cat", "", "abcdefgh", "\u00e9"], 7)
    assert ids.dtype == np.int64 and ids.shape == (4, 7) and tokenizer(()).shape == (0, 128)
    letters = [vocabulary[letter] for letter in "abcdefghct\u0120\u00c3\u00a9"]
    a, b, c, d, e, _, _, _, _, t, space, *accent = letters
    start, end, pad = (vocabulary[name] for name in ("<s>", "</s>", "<pad>"))
    assert ids.tolist() == [
        [start, a, space, c, a, t, end],
        [start, end] + [pad] * 5,
        [start, a, b, c, d, e, end],
        [start, *accent, end] + [pad] * 3,
    ]
    assert tokenizer.pad == pad and tokenizer.size == 1 + max(vocabulary.values())
    again = pickle.loads(pickle.dumps(tokenizer))
    np.testing.assert_array_equal(again(["a cat"]), tokenizer(["a cat"]))


@pytest.mark.parametrize("array", ["numpy", "torch", "jax", "raw"])
def test_tokens_of_a_batch(coco: millrace.Dataset, tmp_path: pathlib.Path, array: Any) -> None:
    if array in ("torch", "jax"):
        pytest.importorskip(array)
    tokenizer = learn(coco, tmp_path, 400)
    options: dict[str, Any] = {**VIEW, "fields": ["tokens", "captions"], "array": array, "max_text": 12}
    for tokens, captions in coco.loader("train", 5, tokenizer=tokenizer, **options):
        assert len(tokens) == len(captions)
        for row, texts in zip(tokens, captions):
            assert [list(map(int, ids)) for ids in row.tolist()] == tokenizer(texts, 12).tolist()
    loader = pickle.loads(pickle.dumps(coco.loader("train", 5, tokenizer=tmp_path, **options)))
    assert len(list(loader)) == len(loader)


def test_tokens_are_those_of_the_package_tokenizers(coco: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    ours = learn(coco, tmp_path, 500)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    theirs.enable_truncation(20)
    theirs.enable_padding(pad_id=ours.pad, length=20)
    texts = [text for (captions,) in coco.loader("train", 5, fields=["captions"], **VIEW) for row in captions for text in row]
    assert ours(texts, 20).tolist() == [encoded.ids for encoded in theirs.encode_batch(texts)]


def test_tokens_that_are_refused(coco: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    tokenizer = learn(coco, tmp_path, 300)
    with pytest.raises(millrace.MisuseError, match="fields: 'tokens' needs tokenizer="):
        coco.loader("train", 5, fields=["tokens"])
    with pytest.raises(millrace.MisuseError, match="tokenizer: its ids are the field 'tokens'"):
        coco.loader("train", 5, tokenizer=tokenizer)
    with pytest.raises(millrace.MisuseError, match="text_column: its texts are the fields"):
        coco.loader("train", 5, text_column="captions")
    with pytest.raises(millrace.MisuseError, match="max_text: 1 is less than 2"):
        coco.loader("train", 5, fields=["tokens"], tokenizer=tokenizer, max_text=1)
    for wrong, message in (("one text", "texts: a list of str"), ([1], "texts: a list of str")):
        with pytest.raises(millrace.MisuseError, match=message):
            tokenizer(wrong)  # type: ignore[arg-type]
    with pytest.raises(millrace.MisuseError, match="length: 0 is less than 2"):
        tokenizer(["a"], 0)
    (tmp_path / "broken.json").write_text("{}")
    with pytest.raises(millrace.BadDataError, match="broken.json"):
        millrace.Tokenizer(tmp_path / "broken.json")
    with pytest.raises(millrace.SystemFailure, match="nowhere"):
        millrace.Tokenizer(tmp_path / "nowhere")
