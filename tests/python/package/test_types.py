"""The type hints: mypy --strict over the package, the stub beside the module, and the tests themselves."""

import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest

import millrace
from millrace._options import ExportOptions, IngestOptions, LoaderOptions

pytest.importorskip("mypy")

PACKAGE = pathlib.Path(__file__).parents[3] / "python" / "millrace"
SETTINGS = PACKAGE.parent / "pyproject.toml"


def run(*words: str) -> None:
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_strict(tmp_path: pathlib.Path) -> None:
    words = ["mypy", f"--config-file={SETTINGS}", f"--cache-dir={tmp_path}"]
    run(*words, str(PACKAGE))
    # pytest's decorators and the stand-ins of tests are not all typed.
    tests = ["--allow-untyped-decorators", "--no-warn-unused-ignores", "--no-warn-return-any"]
    run(*words, *tests, str(pathlib.Path(__file__).parents[1]))


def test_the_stub_is_the_module(tmp_path: pathlib.Path) -> None:
    # Before Python 3.12 the buffer protocol of a C type has no method.
    allowed = "millrace._millrace.Batch.__buffer__\n" if sys.version_info < (3, 12) else ""
    (tmp_path / "allowed").write_text(allowed)
    words = [f"--mypy-config-file={SETTINGS}", f"--allowlist={tmp_path}/allowed"]
    run("mypy.stubtest", "millrace._millrace", *words)


def test_options_have_the_types_of_the_loader() -> None:
    parameters = inspect.signature(millrace.Loader.__init__).parameters.values()
    taken = {p.name: p.annotation for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert {name: kind.__forward_arg__ for name, kind in LoaderOptions.__annotations__.items()} == taken


@pytest.mark.parametrize(
    "command, options, left_out",
    [
        ("ingest", IngestOptions, {"quiet", "json", "progress-fd", "stall-timeout", "dry-run", "options", "write-config"}),
        ("export", ExportOptions, {"quiet", "json"}),
    ],
)
def test_options_are_those_of_the_program(command: str, options: type, left_out: set[str]) -> None:
    shown = subprocess.run([os.environ["MILLRACE_BIN"], command, "--help=all"], capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"^ {2,6}(?:-., )?--([a-z-]+)", shown, re.MULTILINE)) - {"help", "usage"} - left_out
    assert {name.replace("-", "_") for name in names} == set(options.__annotations__)


def test_a_typo_is_found(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import millrace\n"
        "dataset = millrace.ingest('a', to='b', jobz=3)\n"
        "dataset.loader('train', 8, shufle=True)\n"
        "dataset.loader('train', 8, tail='some')\n"
    )
    words = ["mypy", f"--config-file={SETTINGS}", f"--cache-dir={tmp_path}", str(program)]
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, env=environment)
    assert [line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line] == ["2", "3", "4"], done.stdout
