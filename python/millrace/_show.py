"""What a notebook shows of datasets and splits: a table, and a few images.

Invariant: every text of a dataset is escaped; nothing is fetched by the browser.
"""

from __future__ import annotations

import base64
import html
import struct
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._dataset import Dataset, Split

__all__ = ["dataset_html", "split_html"]

_THUMBS, _SIDE, _CLASSES = 8, 96, 30


def _png(pixels: Any) -> bytes:
    """A PNG of uint8 pixels, shape (height, width, 3)."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + pixels[y].tobytes() for y in range(height))

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def _thumb(split: Split, i: int) -> str:
    from ._errors import Error
    from ._views import Square

    try:
        image = base64.b64encode(_png(split.array(i, Square(_SIDE)))).decode()
    except Error as error:
        return f"<figure>{html.escape(str(error))}</figure>"
    label = int(split.labels[i])
    name = split.dataset.classes[label] if 0 <= label < len(split.dataset.classes) else ""
    return (
        f'<figure style="display:inline-block;margin:2px"><img width={_SIDE} height={_SIDE} alt="sample {i}" '
        f'src="data:image/png;base64,{image}"><figcaption>{i} {html.escape(name)}</figcaption></figure>'
    )


def _thumbs(split: Split) -> str:
    try:
        import numpy  # noqa: F401 - pixels are its arrays
    except ImportError:
        return ""
    count = min(_THUMBS, len(split))
    return "<div>" + "".join(_thumb(split, i * len(split) // count) for i in range(count)) + "</div>"


def split_html(split: Split) -> str:
    """The split in a line, and images spread evenly over it."""
    return f"<p><b>{html.escape(repr(split))}</b></p>{_thumbs(split)}"


def dataset_html(dataset: Dataset) -> str:
    """The splits and their samples, the classes, and images of the first split."""
    rows = "".join(f"<tr><td>{html.escape(name)}<td>{len(dataset[name]):,}" for name in dataset)
    classes = ", ".join(html.escape(name) for name in dataset.classes[:_CLASSES])
    more = f", and {len(dataset.classes) - _CLASSES} more" if len(dataset.classes) > _CLASSES else ""
    first = next((dataset[name] for name in dataset if len(dataset[name])), None)
    return (
        f"<p><b>{html.escape(dataset.path)}</b> ({html.escape(dataset.layout)})<br><code>{dataset.digest}</code></p>"
        f"<table><tr><th>split<th>samples{rows}</table><p>{len(dataset.classes)} classes: {classes}{more}</p>"
        + (_thumbs(first) if first is not None else "")
    )
