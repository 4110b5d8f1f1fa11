"""Arrays of torch and JAX share the batch's memory."""

import sys
from typing import Any

import numpy as np
import pytest

import millrace
from millrace._arrays import choose_array

SMALL: dict[str, Any] = {"view": millrace.Square(32), "threads": 1}


def test_torch(dataset: millrace.Dataset) -> None:
    torch = pytest.importorskip("torch")
    expected = next(iter(dataset.loader("train", 8, array="numpy", **SMALL)))
    image, label = next(iter(dataset.loader("train", 8, array="torch", **SMALL)))
    assert image.dtype == torch.float32 and label.dtype == torch.int64
    assert (image.numpy() == expected[0]).all() and (label.numpy() == expected[1]).all()
    batch = next(iter(dataset.loader("train", 8, array="raw", **SMALL)))
    tensor = torch.from_dlpack(batch)
    assert tensor.data_ptr() == batch.address == np.asarray(batch).ctypes.data
    tensor += 1
    assert (np.asarray(batch) == expected[0] + 1).all()
    half, _ = next(iter(dataset.loader("train", 8, array="torch", output="bfloat16", **SMALL)))
    assert half.dtype == torch.bfloat16 and torch.allclose(half.float(), image, rtol=2**-8)
    pixels, _ = next(iter(dataset.loader("train", 8, array="torch", output="uint8", **SMALL)))
    assert pixels.dtype == torch.uint8 and pixels.shape == (8, 32, 32, 3)
    files, _ = next(iter(dataset.loader("train", 8, array="torch", output="encoded", **SMALL)))
    assert bytes(files[3].numpy()) == dataset["train"][3]["image"]


def test_an_empty_last_batch_of_a_rank(dataset: millrace.Dataset) -> None:
    torch = pytest.importorskip("torch")
    # 84 samples, 10 per step over 5 ranks: the last step has 4, none for the last rank.
    loader = dataset.loader("train", 2, rank=4, world=5, tail="partial", array="torch", **SMALL)
    *_, (image, label) = loader
    assert image.shape == (0, 3, 32, 32) and image.dtype == torch.float32 and label.shape == (0,)


def test_jax(dataset: millrace.Dataset) -> None:
    jax = pytest.importorskip("jax")
    expected = next(iter(dataset.loader("train", 8, array="numpy", **SMALL)))
    image, label = next(iter(dataset.loader("train", 8, array="jax", **SMALL)))
    assert isinstance(image, jax.Array) and (np.asarray(image) == expected[0]).all()
    assert (np.asarray(label) == expected[1]).all()
    kept = [x for x, _ in dataset.loader("train", 8, array="jax", **SMALL)]
    again = [x for x, _ in dataset.loader("train", 8, array="numpy", **SMALL)]
    assert all((np.asarray(a) == b).all() for a, b in zip(kept, again))


def test_the_default_is_what_is_imported(dataset: millrace.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys


    for name in ("torch", "jax"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert choose_array(None) == "numpy"
    monkeypatch.setitem(sys.modules, "torch", np)
    assert choose_array(None) == "torch" and choose_array("raw") == "raw"


def test_without_any_library_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("numpy", "torch", "jax"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(millrace.MisuseError, match="neither numpy nor torch is installed; install one, or pass array='raw'"):
        choose_array(None)
    assert choose_array("raw") == "raw"


@pytest.mark.parametrize("array", ["numpy", "torch", "raw"])
def test_float16_is_float32_rounded(dataset: millrace.Dataset, array: Any) -> None:
    if array == "torch":
        pytest.importorskip("torch")
    options: list[dict[str, Any]] = [{}, {"view": millrace.Square(16, unrounded=True)}, {"augment": millrace.Augment(grey=0.5)}]
    for option in options:
        common: dict[str, Any] = {"view": millrace.Crop(16), "fields": ["image"], **option}
        wide = dataset.loader("train", 12, array="numpy", **common)
        half = dataset.loader("train", 12, array=array, output="float16", **common)
        for (exact,), (narrow,) in zip(wide, half, strict=True):
            assert np.asarray(narrow).dtype == np.float16
            np.testing.assert_array_equal(np.asarray(narrow), exact.astype(np.float16))
    mixed = [
        np.asarray(next(iter(dataset.loader("train", 12, output=output, mixup=0.4, array="numpy", view=millrace.Square(16))))[0])
        for output in ("float32", "float16")
    ]
    assert np.abs(mixed[0] - mixed[1]).max() < 2e-3
