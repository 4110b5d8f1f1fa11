"""The examples of the docstrings, and what the package says about itself."""

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


DOCS = pathlib.Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("page", ["python.md", *sorted(path.name for path in (DOCS / "python").iterdir())])
def test_the_pages(made: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    """The blocks of a page run in order; what a comment after print() shows is what it prints."""
    text = (DOCS / page if page == "python.md" else DOCS / "python" / page).read_text()
    program = "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    if 'ingest("source"' in program:
        shutil.copytree(made / "source", tmp_path / "source")
    else:
        shutil.copytree(made / "flowers", tmp_path / "flowers")
    monkeypatch.chdir(tmp_path)
    shown = [line.partition("  # ")[2].strip() for line in program.splitlines() if "print(" in line and "  # " in line]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, page, "exec"), {"__name__": "__main__"})
    lines = printed.getvalue().splitlines()
    assert page == "frameworks.md" or shown
    assert [line for line in shown if line not in lines] == []
