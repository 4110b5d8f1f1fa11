"""What a sample's image becomes: pixels of one size for all samples, cut and resized in C.

Invariant: a view is a value: it can be compared, hashed and pickled, and draws nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._errors import MisuseError

_RATIO = (3 / 4, 4 / 3)

__all__ = ["Center", "Crop", "Letterbox", "RandomCrop", "Square", "View", "check_view", "check_views"]


@dataclass(frozen=True)
class View:
    """The base of the views. All are antialiased.

    Attributes:
        size: width and height of the result in pixels; for all but Center also (height, width).
        bicubic: bicubic instead of bilinear.
        apply_orientation: turn the image as its EXIF orientation says.
        unrounded: resize in float32, as torchvision resizes tensors: not rounded to 8 bits (float output only).
    """

    size: int | tuple[int, int] = 224
    bicubic: bool = False
    apply_orientation: bool = False
    unrounded: bool = False

    def _options(self) -> dict[str, Any]:
        return {
            "size": self.size if isinstance(self.size, int) else self.size[1],
            "height": 0 if isinstance(self.size, int) else self.size[0],
            "bicubic": self.bicubic,
            "apply_orientation": self.apply_orientation,
            "unrounded": self.unrounded,
        }


@dataclass(frozen=True)
class Crop(View):
    """A random part of the image, as torchvision's RandomResizedCrop, mirrored with probability `flip`.

    Attributes:
        scale: the part's share of the image's area, from and to.
        flip: the probability of mirroring.
        ratio: the part's width to its height, from and to.

    What is drawn depends on the seed, the epoch and the sample alone.

    >>> Crop(64, flip=0.0)
    Crop(size=64, bicubic=False, apply_orientation=False, unrounded=False, scale=(0.08, 1.0), flip=0.0, ratio=(0.75, 1.3333333333333333))
    """

    scale: tuple[float, float] = (0.08, 1.0)
    flip: float = 0.5
    ratio: tuple[float, float] = _RATIO

    def _options(self) -> dict[str, Any]:
        low, high = self.scale
        narrow, wide = self.ratio if self.ratio != _RATIO else (0.0, 0.0)  # 0: the same, as in C
        part = {"scale_min": low, "scale_max": high, "ratio_min": narrow, "ratio_max": wide}
        return {**super()._options(), "kind": 0, **part, "flip": self.flip}


@dataclass(frozen=True)
class RandomCrop(View):
    """A random part of `size` at the image's own scale, as torchvision's RandomCrop, mirrored with probability `flip`.

    Attributes:
        padding: pixels around the image that may be in it; they, and what a smaller image lacks, get the colour `mean`.
        flip: the probability of mirroring.

    >>> RandomCrop(32, padding=4).padding
    4
    """

    padding: int = 0
    flip: float = 0.5

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "kind": 4, "resize": self.padding, "flip": self.flip}


@dataclass(frozen=True)
class Square(View):
    """The whole image, its aspect ratio not kept: a square, or size=(height, width)."""

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "kind": 1}


@dataclass(frozen=True)
class Letterbox(View):
    """The whole image, its aspect ratio kept, in the middle of a square or of size=(height, width); around it the colour `mean`."""

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "kind": 3}


@dataclass(frozen=True)
class Center(View):
    """The middle: the short side is resized to `resize` (default: size * 256 / 224), then size x size is cut."""

    resize: int | None = None

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "kind": 2, "resize": self.resize or 0}


def check_view(view: Any) -> View | None:
    if view is not None and not (isinstance(view, View) and type(view) is not View):
        raise MisuseError(f"view: {view!r}; pass Crop(size), RandomCrop(size), Square(size), Center(size) or Letterbox(size)")
    return view


def check_views(option: str, views: Any, view: View | None, output: str) -> list[View]:
    if views is None:
        return []
    if view is not None:
        raise MisuseError(f"view and {option}: pass one of them")
    if output == "encoded":
        raise MisuseError(f"{option}: are of pixels; output='encoded' has none")
    checked = [check_view(one) for one in views] if isinstance(views, (list, tuple)) else []
    if not checked or None in checked:
        raise MisuseError(f"{option}: {views!r}; pass a list of Crop(size), Square(size) ...")
    return [one for one in checked if one is not None]
