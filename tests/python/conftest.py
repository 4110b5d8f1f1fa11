"""Fixtures of the Python tests: small datasets, made once per session by `millrace sample`."""

import os
import pathlib
import shutil
import subprocess

import pytest

import millrace


UNDER_ASAN = "asan" in os.environ.get("LD_PRELOAD", "")  # where freed memory is kept

# For tests that fork while threads of the parent allocate.
FORKS_BESIDE_THREADS = pytest.mark.skipif(UNDER_ASAN, reason="gcc's ASan lets a child have its allocator's locks, held")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with `source`, 120 drawn images of 10 classes, and `flowers`, the dataset made of it."""
    folder = tmp_path_factory.mktemp("made")
    program = os.environ["MILLRACE_BIN"]
    subprocess.run([program, "sample", folder / "source", "--layout", "imagenette", "--images", "120", "-q"], check=True)
    millrace.ingest(folder / "source", to=folder / "flowers")
    return folder


@pytest.fixture(scope="session")
def dataset(made: pathlib.Path) -> millrace.Dataset:
    return millrace.Dataset(made / "flowers")


@pytest.fixture
def damaged(made: pathlib.Path, tmp_path: pathlib.Path) -> millrace.Dataset:
    """A copy of the dataset with one byte of an image of `train` changed."""
    shutil.copytree(made / "flowers", tmp_path / "damaged")
    image = millrace.Dataset(made / "flowers")["train"][40]["image"]
    shard = tmp_path / "damaged" / "train-00000.mdb"
    data = bytearray(shard.read_bytes())
    at = data.index(image) + len(image) // 2
    data[at] ^= 1
    shard.write_bytes(data)
    return millrace.Dataset(tmp_path / "damaged")
