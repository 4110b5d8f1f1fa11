"""Augment: colours changed in the loader's threads."""

import pickle
from typing import Any

import numpy as np
import pytest

import millrace

Pictures = np.ndarray[Any, Any]


def pictures(split: millrace.Split, augment: millrace.Augment | None = None, **options: Any) -> Pictures:
    """An epoch of uint8 pictures, 12 at a time."""
    options = {"view": millrace.Square(64), "output": "uint8", "array": "numpy", "threads": 2, **options}
    return np.concatenate([images for images, _ in millrace.Loader(split, 12, augment=augment, **options)])


def test_equal_to_torchvision(dataset: millrace.Dataset) -> None:
    torch = pytest.importorskip("torch")
    v2 = pytest.importorskip("torchvision.transforms.v2").functional
    split = dataset["train"]
    plain = torch.from_numpy(pictures(split)).permute(0, 3, 1, 2)
    functions = {
        "brightness": (v2.adjust_brightness, (0.4, 1.0, 1.6)),
        "contrast": (v2.adjust_contrast, (0.4, 1.0, 1.6)),
        "saturation": (v2.adjust_saturation, (0.4, 1.0, 1.6)),
        "hue": (v2.adjust_hue, (-0.5, -0.13, 0.3)),
    }
    for name, (function, amounts) in functions.items():
        for amount in amounts:
            options: dict[str, Any] = {name: (amount, amount)}
            ours = pictures(split, millrace.Augment(**options)).transpose(0, 3, 1, 2)
            off = np.abs(ours.astype(int) - function(plain, amount).numpy().astype(int))
            assert off.max() <= 1 and (off > 0).mean() < 0.05, (name, amount, off.max(), (off > 0).mean())
    ours = pictures(split, millrace.Augment(grey=1)).transpose(0, 3, 1, 2)
    assert np.abs(ours.astype(int) - v2.rgb_to_grayscale(plain, num_output_channels=3).numpy().astype(int)).max() <= 1


def test_blur_is_torchvisions(dataset: millrace.Dataset) -> None:
    torch = pytest.importorskip("torch")
    v2 = pytest.importorskip("torchvision.transforms.v2").functional
    plain = torch.from_numpy(pictures(dataset["train"])).permute(0, 3, 1, 2)
    for sigma in (0.1, 0.7, 2.0):
        ours = pictures(dataset["train"], millrace.Augment(blur=1, sigma=(sigma, sigma))).transpose(0, 3, 1, 2)
        side = 2 * int(np.ceil(3 * sigma)) + 1
        off = np.abs(ours.astype(int) - v2.gaussian_blur(plain, [side, side], [sigma, sigma]).numpy().astype(int))
        assert off.max() <= 1 and (off > 0).mean() < 0.01, (sigma, off.max(), (off > 0).mean())


def operations(transform: Any, magnitudes: Any, side: int) -> dict[str, Any]:
    """What the policy of torchvision may do to a picture, by name and amount."""
    done: dict[str, Any] = {}
    for name, (amounts, signed) in transform._AUGMENTATION_SPACE.items():
        values = amounts(31, side, side)
        for at in magnitudes if values is not None else [0]:
            amount = 0.0 if values is None else round(float(values[at]), 4)  # of a linspace, where 16 pixels are 15.999999
            for sign in (1, -1) if signed else (1,):
                done[f"{name} {sign * amount:.4f}"] = (name, sign * amount)
    return done


@pytest.mark.parametrize("trivial", [False, True])
def test_policies_are_torchvisions(dataset: millrace.Dataset, trivial: bool) -> None:
    """Each picture is what one of torchvision's operations makes of it, and all of them occur."""
    torch = pytest.importorskip("torch")
    v2 = pytest.importorskip("torchvision.transforms.v2")
    plain = torch.from_numpy(pictures(dataset["train"])).permute(0, 3, 1, 2)
    theirs = v2.TrivialAugmentWide() if trivial else v2.RandAugment(1, 12)
    choices = operations(theirs, range(31) if trivial else [12], 64)
    made = {
        word: theirs._apply_image_or_video_transform(plain, name, amount, interpolation=theirs.interpolation, fill=theirs._fill)
        for word, (name, amount) in choices.items()
    }
    augment = millrace.Augment(trivial=True) if trivial else millrace.Augment(randaugment=1, magnitude=12)
    found = set()
    for seed in range(4):
        ours = torch.from_numpy(pictures(dataset["train"], augment, seed=seed)).permute(0, 3, 1, 2)
        far = {word: ((ours.int() - images.int()).abs() > 1).float().mean((1, 2, 3)) for word, images in made.items()}
        for i in range(len(ours)):
            word = min(far, key=lambda word: float(far[word][i]))
            assert float(far[word][i]) < 0.01, (seed, i, word, float(far[word][i]))  # halves of a pixel that round elsewhere
            found.add(word.split()[0])
    assert found == {name for name, _ in choices.values()}


def test_each_epoch_is_another_and_each_run_the_same(dataset: millrace.Dataset) -> None:
    strong = millrace.Augment(brightness=0.5, contrast=0.5, saturation=0.5, hue=0.2, grey=0.2, erase=0.3, blur=0.5, randaugment=2)
    loader = millrace.Loader(dataset["train"], 12, view=millrace.Square(32), output="uint8", array="numpy", augment=strong)
    first, second = list(loader), list(loader)
    assert all((a[0] != b[0]).any() for a, b in zip(first, second))
    loader.set_epoch(1)
    steps = iter(loader)
    next(steps)
    state = loader.state_dict()
    again = pickle.loads(pickle.dumps(loader))
    again.load_state_dict(state)
    for (images, _), (wanted, _) in zip(again, second[1:]):
        np.testing.assert_array_equal(images, wanted)


def test_erased_parts_have_the_mean_colour(dataset: millrace.Dataset) -> None:
    mean = (0.1, 0.5, 0.9)
    plain = pictures(dataset["train"], mean=mean, std=(1, 1, 1))
    erased = pictures(dataset["train"], millrace.Augment(erase=1), mean=mean, std=(1, 1, 1))
    for before, after in zip(plain, erased):
        other = (before != after).any(2)
        assert (after[other] == [26, 128, 230]).all() and 0 < other.mean() <= 0.34


def test_what_it_refuses(dataset: millrace.Dataset) -> None:
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (millrace.Augment(hue=0.6), {}, "hue"),
        (millrace.Augment(brightness=-1), {}, "brightness"),
        (millrace.Augment(contrast="much"), {}, "contrast"),  # type: ignore[arg-type]
        (millrace.Augment(grey=1), {"output": "encoded"}, "augment"),
        (millrace.Augment(blur=2), {}, "blur"),
        (millrace.Augment(blur=1, sigma=(0, 1)), {}, "sigma"),
        (millrace.Augment(blur=1, sigma=2), {}, "sigma"),  # type: ignore[arg-type]
        (millrace.Augment(randaugment=17), {}, "at most 16"),
        (millrace.Augment(randaugment=-1), {}, "randaugment"),
        (millrace.Augment(randaugment=2, magnitude=31), {}, "magnitude"),
        (millrace.Augment(randaugment=2, trivial=True), {}, "choose one"),
        (millrace.Augment(trivial=True), {"fields": ["image", "boxes"]}, "not the objects"),
        ("grey", {}, "augment"),
    ]
    for augment, options, word in wrong:
        with pytest.raises(millrace.MisuseError, match=word):
            pictures(dataset["train"], augment, **options)
