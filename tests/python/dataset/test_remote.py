"""A dataset behind a URL is the same one: facts, samples, batches, pickles.  Covers python/millrace/_dataset.py."""

import ctypes
import pathlib
import pickle
import subprocess
import sys
from collections.abc import Iterator

import pytest

import millrace

SERVER = pathlib.Path(__file__).parents[2] / "support" / "remote" / "server.py"


@pytest.fixture
def url(made: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    try:
        ctypes.CDLL("libcurl.so.4")
    except OSError:
        pytest.skip("libcurl4 is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("MILLRACE_PATIENCE", "2")
    with subprocess.Popen(
        [sys.executable, str(SERVER), str(made)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/flowers"
        server.kill()


def pixels(dataset: millrace.Dataset) -> list[bytes]:
    loader = dataset.loader("train", 16, shuffle=True, seed=1, view=millrace.Crop(32), array="numpy", threads=2)
    return [image.tobytes() for image, _ in loader]


def test_it_is_the_local_one(url: str, dataset: millrace.Dataset) -> None:
    remote = millrace.Dataset(url, expect=dataset.digest)
    assert list(remote) == list(dataset) and remote.classes == dataset.classes
    assert remote.manifest == dataset.manifest
    assert remote["train"][3] == dataset["train"][3]
    assert pixels(remote) == pixels(dataset)
    again = pickle.loads(pickle.dumps(remote))
    assert again["train"][4] == dataset["train"][4]
    with pytest.raises(millrace.MisuseError, match="report.json is beside a dataset"):
        remote.report


def test_what_is_wrong_is_said(url: str, dataset: millrace.Dataset) -> None:
    with pytest.raises(millrace.MisuseError, match="is not a dataset: there is no manifest.json"):
        millrace.Dataset(url + "/nowhere")
    with pytest.raises(millrace.BadDataError, match="not the expected dataset"):
        millrace.Dataset(url + "#sha256=" + "0" * 64)
