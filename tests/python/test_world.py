"""Rank and world from the launcher's environment."""

import os
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


def test_a_loader_takes_its_part(dataset: millrace.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    loader: Any = dataset.loader("train", 8, array="raw", view=millrace.Square(16))
    assert (loader.rank, loader.world, len(loader)) == (1, 2, 6)
