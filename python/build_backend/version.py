"""The package's version: that of CMakeLists.txt, the one place where it is written."""

from __future__ import annotations

import pathlib
import re
from typing import Any

__all__ = ["dynamic_metadata", "find_root"]


def find_root() -> pathlib.Path:
    """The sources of millrace: beside this package in a checkout, in core/ in an sdist."""
    package = pathlib.Path(__file__).resolve().parents[1]
    core = package / "core"
    return core if core.exists() else package.parent


def dynamic_metadata(field: str, settings: dict[str, Any] | None = None) -> str:
    text = (find_root() / "CMakeLists.txt").read_text()
    found = re.search(r"^project\(millrace VERSION (\S+)", text, re.MULTILINE)
    if field != "version" or found is None:
        raise RuntimeError(f"CMakeLists.txt does not say the {field}")
    return found.group(1)
