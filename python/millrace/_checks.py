"""What a loader's options may be, and what they become.

Invariant: what is refused is a MisuseError that begins with the option's name.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._errors import MisuseError

if TYPE_CHECKING:
    from ._dataset import Split

__all__ = [
    "ON_BAD",
    "OUTPUTS",
    "SHUFFLES",
    "TAILS",
    "check_colour",
    "check_fields",
    "check_integer",
    "check_name",
    "check_number",
    "check_output",
    "check_split",
    "choose",
    "choose_map",
    "default_threads",
    "refuse_worker",
    "word_of",
]

OUTPUTS = {"encoded": 0, "uint8": 1, "float32": 2, "bfloat16": 3, "float16": 5}
TAILS = {"drop": 0, "pad": 1, "partial": 2}
ON_BAD = {"fail": 0, "replace": 1, "mask": 2}
SHUFFLES: dict[Any, int] = {True: 0, False: 1, "window": 2}
FIELDS = (
    "image label weight sample item meta width height codec orientation left top crop_width crop_height flip "
    "share other other_label captions tokens labels boxes classes crowd number polygons keypoints mask targets"
).split()


def choose(option: str, table: Mapping[Any, int], value: Any) -> int:
    try:
        return table[value]
    except (KeyError, TypeError):
        known = ", ".join(repr(name) for name in table)
        raise MisuseError(f"{option}: {value!r} must be one of {known}") from None


def check_fields(fields: Sequence[str]) -> tuple[str, ...]:
    unknown = [name for name in fields if name not in FIELDS]
    if unknown or isinstance(fields, str) or not fields:
        raise MisuseError(f"fields: {fields!r}; a list of {', '.join(FIELDS)}")
    return tuple(fields)


def check_output(output: str) -> str:
    choose("output", OUTPUTS, output)
    return output


def check_split(split: Any) -> Split:
    if not hasattr(split, "with_transform"):
        raise MisuseError(f"dataset: {split!r} is not a split; pass millrace.Dataset(path)['train']")
    return split  # type: ignore[no-any-return]


def choose_map(
    split: Split, function: Callable[[Any], Any] | None, fields: tuple[str, ...], output: str
) -> tuple[Callable[[Any], Any] | None, tuple[str, ...], str]:
    """The function on each sample, the fields that it gets, and how images come: a split's transform gets its items."""
    if split.transform is None:
        return function, fields, output
    if function is not None:
        raise MisuseError("map: the split has a transform of its own; leave one of them out")
    return split.transform, ("image", "label", "width", "height", "meta"), "encoded"


def check_integer(option: str, value: Any, least: int) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise MisuseError(f"{option}: {value!r} is not an integer") from None
    if number < least:
        raise MisuseError(f"{option}: {number} is less than {least}")
    return number


def check_name(option: str, value: Any) -> str:
    """"" for None."""
    if value is None:
        return ""
    if not isinstance(value, str) or not 0 < len(value.encode()) < 64:
        raise MisuseError(f"{option}: {value!r}; a name, of at most 63 bytes")
    return value


def check_number(option: str, value: Any, *, low: float, high: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise MisuseError(f"{option}: {value!r} is not a number") from None
    if not low <= number <= high:
        raise MisuseError(f"{option}: {value!r}; from {low:g} to {high:g}")
    return number


def check_colour(option: str, values: Any, *, low: float, high: float) -> tuple[float, ...]:
    try:
        numbers = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != 3 or not all(low <= number <= high for number in numbers):
        raise MisuseError(f"{option}: {values!r}; three numbers for pixels from 0 to 1, for example (0.5, 0.5, 0.5)")
    return numbers


def word_of(name: str, value: Any) -> str:
    """A member of the state as its option is written."""
    tables: dict[str, Mapping[Any, int]] = {"tail": TAILS, "shuffle": SHUFFLES}
    table = tables.get(name, {})
    return repr(next((word for word, number in table.items() if number == value), value))


def refuse_worker() -> None:
    """In a worker of torch's DataLoader, each of which would go through all of it."""
    data = sys.modules.get("torch.utils.data")
    if data is not None and data.get_worker_info() is not None:
        raise MisuseError("a Loader in a worker of a DataLoader would give every batch once per worker; iterate over the Loader "
                          "itself, or pass the split to the DataLoader")


def default_threads() -> int:
    """The processors of this process, divided among the ranks of this host."""
    processors = len(os.sched_getaffinity(0))
    for name in ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE", "MPI_LOCALNRANKS"):
        if os.environ.get(name, "").isdigit():
            return max(1, processors // max(1, int(os.environ[name])))
    return processors
