"""Token ids of texts, by the trainer's tokenizer.

Invariant: ids are those of the `tokenizers` package for the same file.
"""

from __future__ import annotations

import itertools
import os
from array import array as _array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _millrace
from ._checks import check_integer
from ._errors import MisuseError
from ._ragged import Ragged

if TYPE_CHECKING:
    import numpy

__all__ = ["Texts", "Tokenizer", "check_texts", "token_field"]


class Tokenizer:
    """Texts to token ids: byte-level BPE, as in RoBERTa, GPT-2 and BridgeTower.

    Args:
        path: tokenizer.json, vocab.json with merges.txt beside it, or a folder that has either. `millrace tokenizer` learns one
            from the captions of a dataset.

    Attributes:
        size: 1 + the largest id.
        pad: the id that fills up a row; `ids != tokenizer.pad` is the attention mask.

    Threads may share it, and it can be pickled.

    Raises:
        BadDataError: the file is not such a tokenizer; the message says what is wrong with it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)
        self._handle = _millrace.Tokenizer(self.path)
        self.size = self._handle.size
        self.pad = self._handle.pad

    def __call__(self, texts: Sequence[str], length: int = 128) -> numpy.ndarray[Any, numpy.dtype[numpy.int64]]:
        """The ids of each text, shape (len(texts), length), int64: <s>, the text, cut if it is longer, </s>, then `pad`."""
        import numpy

        return numpy.frombuffer(self._encode(texts, length), dtype=numpy.int64).reshape(-1, length)

    def _encode(self, texts: Sequence[str], length: int) -> bytearray:
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise MisuseError("texts: a list of str")
        return self._handle.encode(texts, check_integer("length", length, 2))

    def __repr__(self) -> str:
        return f"millrace.Tokenizer({self.path!r}, {self.size} ids)"

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[str]]:
        return Tokenizer, (self.path,)


class Texts(NamedTuple):
    """What a loader does with the texts of its samples."""

    column: str | None
    tokenizer: Tokenizer | None
    length: int


def check_texts(fields: Sequence[str], column: str | None, tokenizer: Any, length: int) -> Texts:
    """Of a loader's options; a tokenizer's path is opened."""
    if tokenizer is None and "tokens" in fields:
        raise MisuseError("fields: 'tokens' needs tokenizer=millrace.Tokenizer(PATH)")
    if tokenizer is not None and "tokens" not in fields:
        raise MisuseError("tokenizer: its ids are the field 'tokens', which fields does not name")
    if column is not None and not {"captions", "tokens"} & set(fields):
        raise MisuseError("text_column: its texts are the fields 'captions' and 'tokens', and fields names neither")
    if tokenizer is not None and not isinstance(tokenizer, Tokenizer):
        tokenizer = Tokenizer(tokenizer)
    return Texts(column, tokenizer, check_integer("max_text", length, 2))


def token_field(texts: Texts, make: Callable[[bytearray, str, int], Any]) -> Callable[[Any], Ragged]:
    """A function that takes the ids of a batch's captions: a row of `length` for each, by sample; `make` makes the arrays."""

    def take(batch: Any) -> Ragged:
        captions = batch.captions(texts.column)
        offsets = bytearray(_array("q", itertools.accumulate(map(len, captions), initial=0)).tobytes())
        flat = list(itertools.chain.from_iterable(captions))
        assert texts.tokenizer is not None
        return Ragged(make(texts.tokenizer._encode(flat, texts.length), "int64", texts.length), make(offsets, "int64", 1))

    return take
