"""The examples of the docstrings, and what the package says of itself."""

import contextlib
import doctest
import importlib
import importlib.util
import io
import os
import pathlib
import pkgutil
import re
import shutil

import pytest

import millrace


def test_docstring_examples(made: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(made / "flowers", tmp_path / "flowers")
    shutil.copytree(made / "source", tmp_path / "flowers-source")
    monkeypatch.chdir(tmp_path)
    examples = 0
    for found in pkgutil.iter_modules(millrace.__path__):
        if found.name.startswith("__"):
            continue
        if found.name == "integrations" and importlib.util.find_spec("transformers") is None:
            continue  # it is for those who have it
        module = importlib.import_module("millrace." + found.name)
        result = doctest.testmod(module, extraglobs=vars(millrace), raise_on_error=False)
        assert result.failed == 0, found.name
        examples += result.attempted
    assert examples > 15


def test_every_public_thing_is_described() -> None:
    for name in millrace.__all__:
        thing = getattr(millrace, name)
        if callable(thing) and name != "Batch":
            assert thing.__doc__ and len(thing.__doc__) > 20, name
    assert os.path.exists(os.path.join(os.path.dirname(millrace.__file__), "py.typed"))


def test_the_manual(made: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of docs/python.md run in order; what a comment after print() shows is what it prints."""
    shutil.copytree(made / "source", tmp_path / "source")
    monkeypatch.chdir(tmp_path)
    page = (pathlib.Path(__file__).parents[2] / "docs" / "python.md").read_text()
    program = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    shown = [line.partition("  # ")[2].strip() for line in program.splitlines() if "print(" in line and "  # " in line]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "python.md", "exec"), {"__name__": "__main__"})
    lines = printed.getvalue().splitlines()
    assert len(shown) >= 4 and [line for line in shown if line not in lines] == []
