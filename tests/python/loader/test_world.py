"""Rank and world from the launcher's environment."""

import os
import pickle
from typing import Any

import pytest

import millrace
from millrace._world import find_world


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("OMPI_", "SLURM_", "PMIX_", "PMI_")) or name in ("RANK", "WORLD_SIZE"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    "variables, found",
    [
        ({}, (0, 1)),
        ({"RANK": "3", "WORLD_SIZE": "4"}, (3, 4)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}, (1, 2)),
        ({"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_NTASKS": "8"}, (5, 8)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, (0, 1)),  # a batch script: one process that starts others
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, (1, 2)),
    ],
)
def test_launchers(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], found: tuple[int, int]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert find_world(None, None) == found


@pytest.mark.parametrize("variables", [{"WORLD_SIZE": "4"}, {"WORLD_SIZE": "four", "RANK": "0"}])
def test_half_a_world_is_an_error(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(millrace.MisuseError, match="pass rank= and world="):
        find_world(None, None)
    assert find_world(1, 2) == (1, 2)
    for rank, world, said in ((0, 0, "world: 0 is less than 1"), (2, 2, "rank: 2 is not from 0 to 1")):
        with pytest.raises(millrace.MisuseError, match=said):
            find_world(rank, world)


def test_a_loader_takes_its_part(dataset: millrace.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    loader: Any = dataset.loader("train", 8, array="raw", view=millrace.Square(16))
    assert (loader.rank, loader.world, len(loader)) == (1, 2, 6)


def test_ranks_are_looked_up_when_a_pass_begins(dataset: millrace.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loader that was made, and copied, before its rank existed: as spawn, fork and notebook launchers do."""
    loader: Any = dataset.loader("train", 8, array="raw", view=millrace.Square(16), fields=("sample",), as_dict=True)
    copies = [pickle.loads(pickle.dumps(loader)) for _ in range(2)]
    seen = []
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, copy in enumerate([loader, copies[1]]):
        monkeypatch.setenv("RANK", str(rank))
        batches = [batch["sample"].tolist() for batch in copy]
        assert (copy.rank, copy.world, len(copy), len(batches)) == (rank, 2, 6, 6)
        seen.append(sorted(i for batch in batches for i in batch))
    assert set(seen[0]).isdisjoint(seen[1]) or len(set(seen[0]) & set(seen[1])) < 16  # the padding alone
    assert set(seen[0]) | set(seen[1]) == set(range(84))


def test_ranks_stay_while_a_pass_runs(dataset: millrace.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    loader: Any = dataset.loader("train", 8, array="raw", view=millrace.Square(16))
    it = iter(loader)
    next(it)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert (loader.world, loader.state_dict()["global_batch"], 1 + len(list(it))) == (1, 8, 11)


def test_what_is_not_known_yet_is_an_error_of_the_pass(dataset: millrace.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lightning's first process sets WORLD_SIZE for its children, and no RANK, before they join."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    loader: Any = dataset.loader("train", 8, array="raw", view=millrace.Square(16))
    with pytest.raises(millrace.MisuseError, match="WORLD_SIZE is set, but RANK is not"):
        next(iter(loader))
    monkeypatch.setenv("RANK", "0")
    assert len(list(loader)) == 6


@pytest.mark.parametrize(
    "variables, found",
    [
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "RANK": "13", "WORLD_SIZE": "16"}, (13, 16)),
        ({"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8", "RANK": "0", "WORLD_SIZE": "1"}, (5, 8)),
        ({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "RANK": "13", "WORLD_SIZE": "16"}, (13, 16)),
    ],
)
def test_a_launcher_in_a_launcher(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], found: tuple[int, int]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert find_world(None, None) == found


def test_launchers_that_disagree(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "RANK": "2", "WORLD_SIZE": "4"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(millrace.MisuseError, match="RANK is 2, and OMPI_COMM_WORLD_RANK is 1, of 4 both"):
        find_world(None, None)
