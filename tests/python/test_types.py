"""The type hints: mypy --strict over the package, the stub beside the module, and the tests themselves."""

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("mypy")

PACKAGE = pathlib.Path(__file__).parents[2] / "python" / "millrace"


def run(*words: str) -> None:
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_strict(tmp_path: pathlib.Path) -> None:
    missing = ["torch", "jax", "jax.numpy", "ml_dtypes"]
    settings = "".join(f"[mypy-{name}.*]\nignore_missing_imports = True\nfollow_imports = skip\n" for name in missing)
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\nwarn_unused_ignores = False\n" + settings)
    cache = f"--cache-dir={tmp_path}/cache"
    run("mypy", f"--config-file={tmp_path}/mypy.ini", cache, str(PACKAGE))
    run("mypy", f"--config-file={tmp_path}/mypy.ini", cache, "--allow-untyped-decorators", str(pathlib.Path(__file__).parent))


def test_the_stub_is_the_module() -> None:
    run("mypy.stubtest", "millrace._millrace", "--ignore-missing-stub")
