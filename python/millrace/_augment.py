"""What happens to the pixels of a sample after it was cut and resized, in C.

Invariant: an Augment is a value, as a view is: it can be compared, hashed and pickled, and draws nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._checks import check_integer
from ._errors import MisuseError

__all__ = ["Augment", "check_augment"]

Range = float | tuple[float, float]


def _range(option: str, value: Any, middle: float) -> tuple[float, float]:
    """As torchvision reads it: a number is a distance from what changes nothing, a pair is from and to."""
    try:
        if isinstance(value, (tuple, list)):
            low, high = (float(number) for number in value)
            return low, high
        far = float(value)
    except (TypeError, ValueError):
        raise MisuseError(f"augment: {option}: {value!r} is neither a number nor a pair of numbers") from None
    if far < 0:
        raise MisuseError(f"augment: {option}: {value!r} is less than 0")
    return (max(middle - far, 0.0) if middle else -far, middle + far) if far else (0.0, 0.0)


def _pair(option: str, value: Any) -> tuple[float, float]:
    try:
        low, high = (float(number) for number in value)
    except (TypeError, ValueError):
        raise MisuseError(f"augment: {option}: {value!r} is not a pair of numbers") from None
    return low, high


@dataclass(frozen=True)
class Augment:
    """Random changes of pixels, in the loader's threads; Loader(augment=...). In the order of torchvision's recipes: a policy,
    colours, grey, blur, erasing.

    Attributes:
        brightness, contrast, saturation: a factor from 1 - x to 1 + x, or (from, to), as in torchvision's ColorJitter; 0:
            unchanged. They and the hue are applied in a random order.
        hue: turned by up to x of the circle, at most 0.5, or (from, to).
        grey: the probability of a grey image, as in RandomGrayscale.
        blur: the probability of a Gaussian blur, as in GaussianBlur, whose kernel reaches three times sigma.
        sigma: the blur's sigma, in pixels of the view, from and to.
        randaugment: RandAugment with this many operations of `magnitude`, 0 to 30; 0: off. Pixels that come in from outside are
            black. It and TrivialAugment move pixels and not boxes, and are refused with fields of objects.
        magnitude: the magnitude of RandAugment's operations.
        trivial: TrivialAugmentWide: one operation of a random magnitude.
        erase: the probability that a part of 2 % to 33 % gets the mean colour, as in RandomErasing.

    What is drawn depends on the seed, the epoch and the sample alone: any number of ranks and threads, and a run that
    resumes, see the same images.

    >>> Augment(brightness=0.4, grey=0.2)
    Augment(brightness=0.4, contrast=0.0, saturation=0.0, hue=0.0, grey=0.2, erase=0.0, blur=0.0, sigma=(0.1, 2.0), \
randaugment=0, magnitude=9, trivial=False)
    """

    brightness: Range = 0.0
    contrast: Range = 0.0
    saturation: Range = 0.0
    hue: Range = 0.0
    grey: float = 0.0
    erase: float = 0.0
    blur: float = 0.0
    sigma: tuple[float, float] = (0.1, 2.0)
    randaugment: int = 0
    magnitude: int = 9
    trivial: bool = False

    def _options(self) -> dict[str, Any]:
        return {
            "brightness": _range("brightness", self.brightness, 1.0),
            "contrast": _range("contrast", self.contrast, 1.0),
            "saturation": _range("saturation", self.saturation, 1.0),
            "hue": _range("hue", self.hue, 0.0),
            "grey": self.grey,
            "erase": self.erase,
            "blur": self.blur,
            "sigma": _pair("sigma", self.sigma),
            "randaugment": check_integer("augment: randaugment", self.randaugment, 0),
            "magnitude": check_integer("augment: magnitude", self.magnitude, 0),
            "trivial": bool(self.trivial),
        }


def check_augment(augment: Any) -> Augment:
    if augment is not None and not isinstance(augment, Augment):
        raise MisuseError(f"augment: {augment!r}; pass Augment(brightness=0.4, ...)")
    return augment or Augment()
