"""ingest, verify, export, cli: the program as a child."""

import os
import pathlib
import shutil
import subprocess
import sys
import warnings
from typing import Any

import pytest

import millrace
from millrace import _program


def test_ingest_with_progress(made: pathlib.Path, tmp_path: pathlib.Path) -> None:
    seen: list[tuple[str, int, int]] = []
    made_again = millrace.ingest(
        made / "source", to=tmp_path / "d", jobs=1, shard_size="64KiB", split_map={"val": "test"},
        exclude=["*/train/n01440764"], seek_index=8, progress=lambda *step: seen.append(step),
    )  # fmt: skip
    assert list(made_again) == ["train", "test"] and len(made_again.classes) <= 10
    steps = [step for step, _, _ in seen]
    assert list(dict.fromkeys(steps)) == ["checking", "writing", "seek index"]
    for step in dict.fromkeys(steps):
        done = [d for s, d, _ in seen if s == step]
        assert done == sorted(done) and done[-1] == [t for s, _, t in seen if s == step][-1]


def test_an_exception_in_the_callback_ends_ingest(made: pathlib.Path, tmp_path: pathlib.Path) -> None:
    def stop(step: str, done: int, total: int) -> None:
        raise RuntimeError(step)

    with pytest.raises(RuntimeError, match="checking"):
        millrace.ingest(made / "source", to=tmp_path / "d", progress=stop)
    assert not (tmp_path / "d").exists()


def test_errors_of_the_program(made: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(millrace.MisuseError, match="unknown option --bogus"):
        millrace.ingest(made / "source", to=tmp_path / "d", bogus=1)  # type: ignore[call-arg]
    with pytest.raises(millrace.MisuseError, match="already holds a dataset"):
        millrace.ingest(made / "source", to=made / "flowers")
    (tmp_path / "empty").mkdir()
    with pytest.raises(millrace.BadDataError) as caught:
        millrace.ingest(tmp_path / "empty", to=tmp_path / "d")
    assert str(caught.value).splitlines()[0].startswith(str(tmp_path / "empty"))


def test_verify(dataset: millrace.Dataset, damaged: millrace.Dataset) -> None:
    for level in ("quick", "full", "deep", "decode"):
        report = millrace.verify(dataset.path, level=level)  # type: ignore[arg-type]
        assert report["ok"] and report["whole"] and report["digest"] == dataset.digest
    report = millrace.verify(damaged.path)
    assert not report["ok"] and report["damaged"][0]["shard"] == "train-00000" and 40 in [problem.get("sample") for problem in report["problems"]]
    assert not millrace.verify(dataset.path, expect="0" * 64)["ok"]
    with pytest.raises(millrace.MisuseError):
        millrace.verify("/nowhere")


def test_export_and_back(dataset: millrace.Dataset, made: pathlib.Path, tmp_path: pathlib.Path) -> None:
    millrace.export(dataset.path, tmp_path / "tree")
    for sample in dataset["val"]:
        assert (tmp_path / "tree" / sample["meta"]["source"]).read_bytes() == sample["image"]
    millrace.export(dataset.path, tmp_path / "all.tar", split="val")
    again = millrace.ingest(tmp_path / "all.tar", to=tmp_path / "again")
    assert [s["image"] for s in again["val"]] == [s["image"] for s in dataset["val"]]


def test_children_see_no_launcher(monkeypatch: pytest.MonkeyPatch, dataset: millrace.Dataset) -> None:
    for name in ("OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "SLURM_STEP_NUM_TASKS", "WORLD_SIZE"):
        monkeypatch.setenv(name, "2")
    assert not [n for n in _program.child_environment() if n.startswith(("OMPI_", "PMIX_", "SLURM_")) or n == "WORLD_SIZE"]
    assert millrace.verify(dataset.path, level="quick")["ok"]


def test_option_words() -> None:
    words = _program.option_words(
        {"jobs": 4, "force": True, "quiet": False, "report": None, "split_map": {"a": "b", "c": ""},
         "leave_out": ["x"], "exclude": ["y", pathlib.Path("z")], "max_rejects": "1%"}
    )  # fmt: skip
    assert words == ["--jobs=4", "--force", "--split-map=a=b,c=", "--leave-out=x", "--exclude=y", "--exclude=z", "--max-rejects=1%"]


def test_the_module_is_the_program() -> None:
    done = subprocess.run([sys.executable, "-m", "millrace", "--version"], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0 and done.stdout.startswith("millrace " + millrace.__version__)
    wrong = subprocess.run([sys.executable, "-m", "millrace", "verify", "/nowhere"], capture_output=True, env=os.environ)
    assert wrong.returncode == 2


def test_a_missing_program_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.delenv("MILLRACE_BIN")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    if os.path.exists(os.path.join(os.path.dirname(_program.__file__), "bin", "millrace")):
        pytest.skip("this package has the program in it")
    with pytest.raises(millrace.SystemFailure, match="the program was not found"):
        millrace.verify(tmp_path)
    monkeypatch.setenv("MILLRACE_BIN", str(tmp_path / "gone"))
    with pytest.raises(millrace.SystemFailure, match="cannot be started"):
        millrace.verify(tmp_path)


def test_ingest_warns_of_what_the_program_prints(made: Any, tmp_path: Any) -> None:
    source = tmp_path / "source"
    shutil.copytree(made / "source", source)
    images = sorted(source.glob("**/train/*/*.JPEG"))
    images[0].write_bytes(images[0].read_bytes()[:200])
    shutil.copy(images[1], next(source.glob("**/val/*")) / "copy.JPEG")
    with pytest.warns(UserWarning, match=r"1 rejected \(.*cut short.*1 leak.* \(.*equal bytes") as said:
        dataset = millrace.ingest(source, to=tmp_path / "d", max_rejects=1)
    assert said[0].filename == __file__
    assert dataset.report["counts"]["leaks"] == 1 and dataset.report["rejects"][0]["file"].endswith(images[0].name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        millrace.ingest(made / "source", to=tmp_path / "clean")


def test_calls_that_cannot_be_meant(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    level: Any = "deepest"
    with pytest.raises(millrace.MisuseError, match="level: 'deepest' must be one of 'quick', 'full', 'deep', 'decode'"):
        millrace.verify(dataset.path, level=level)
    with pytest.raises(millrace.MisuseError, match="sources: pass a folder or an archive"):
        millrace.ingest(to=tmp_path / "d")
    dry: Any = {"dry_run": True}
    with pytest.raises(millrace.MisuseError, match="dry_run: there is no dataset to open"):
        millrace.ingest(dataset.path, to=tmp_path / "d", **dry)
    assert os.listdir(tmp_path) == []
