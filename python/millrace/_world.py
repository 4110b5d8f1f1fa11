"""Which rank this process is, and of how many.

Invariant: never guessed from a count alone: a process that knows the world but not its rank is an error.
"""

from __future__ import annotations

import os
import sys

from ._checks import check_integer
from ._errors import MisuseError

__all__ = ["find_world"]

# Rank and world as launchers set them.
_LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("RANK", "WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("PMIX_RANK", "PMIX_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)


def _from_torch() -> tuple[int, int] | None:
    torch = sys.modules.get("torch.distributed")
    if torch is not None and torch.is_available() and torch.is_initialized():
        return torch.get_rank(), torch.get_world_size()
    return None


def _from_jax() -> tuple[int, int] | None:
    jax = sys.modules.get("jax")
    started = getattr(getattr(jax, "distributed", None), "is_initialized", None)
    if jax is not None and started is not None and started():
        return jax.process_index(), jax.process_count()
    return None


def _from_environment() -> tuple[int, int] | None:
    """Where one launcher runs inside another (mpirun starts one torchrun per node), the larger world is the whole."""
    found: list[tuple[int, int, str]] = []
    lacking = ""
    for rank, world in _LAUNCHERS:
        if world not in os.environ:
            continue
        if rank not in os.environ:
            lacking = lacking or f"{world} is set, but {rank} is not: pass rank= and world="
            continue
        try:
            found.append((int(os.environ[world]), int(os.environ[rank]), rank))
        except ValueError:
            raise MisuseError(f"{rank} and {world} are not numbers: pass rank= and world=") from None
    most = max((world for world, _, _ in found), default=0)
    ranks = {rank: name for world, rank, name in reversed(found) if world == most}
    if lacking and most <= 1:
        raise MisuseError(lacking)
    if len(ranks) > 1:
        (one, first), (other, second) = list(ranks.items())[:2]
        raise MisuseError(f"{first} is {one}, and {second} is {other}, of {most} both: pass rank= and world=")
    return (next(iter(ranks)), most) if ranks else None


def find_world(rank: int | None, world: int | None) -> tuple[int, int]:
    """(rank, world): as given, else from torch.distributed, JAX, or the launcher's environment; else (0, 1)."""
    if (rank is None) != (world is None):
        raise MisuseError("rank and world: pass both or neither")
    if rank is not None and world is not None:
        check_integer("world", world, 1)
        if not 0 <= rank < world:
            raise MisuseError(f"rank: {rank} is not from 0 to {world - 1}")
        return rank, world
    return _from_torch() or _from_jax() or _from_environment() or (0, 1)
