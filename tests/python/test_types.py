"""The type hints: mypy --strict over the package, the stub beside the module, and the tests themselves."""

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("mypy")

PACKAGE = pathlib.Path(__file__).parents[2] / "python" / "millrace"
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
    run(*words, *tests, str(pathlib.Path(__file__).parent))


def test_the_stub_is_the_module(tmp_path: pathlib.Path) -> None:
    # Before Python 3.12 the buffer protocol of a C type has no method.
    allowed = "millrace._millrace.Batch.__buffer__\n" if sys.version_info < (3, 12) else ""
    (tmp_path / "allowed").write_text(allowed)
    words = [f"--mypy-config-file={SETTINGS}", f"--allowlist={tmp_path}/allowed"]
    run("mypy.stubtest", "millrace._millrace", *words)
