"""The build backend: scikit-build-core, which builds the CMake project, after a look at what the system needs.

Invariant: a build changes nothing in the source tree; an sdist has the sources of millrace in core/.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import Any

from scikit_build_core import build as _build
from scikit_build_core.build import (  # noqa: F401 - the hooks of PEP 517
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_wheel,
)
from version import find_root

# pkg-config's names of what CMakeLists.txt asks for, with Debian's packages.
_NEEDED = {
    "lmdb": "liblmdb-dev",
    "libarchive": "libarchive-dev",
    "zlib": "zlib1g-dev",
    "libjpeg": "libjpeg62-turbo-dev",
    "spng": "libspng-dev",
    "libdeflate": "libdeflate-dev",
    "libwebp": "libwebp-dev",
    "yajl": "libyajl-dev",
    "jansson": "libjansson-dev",
    "yaml-0.1": "libyaml-dev",
    "expat": "libexpat1-dev",
    "libxxhash": "libxxhash-dev",
    "libcrypto": "libssl-dev",
    "openblas": "libopenblas-dev",
}
_SOURCES = (
    "CMakeLists.txt millrace.c millrace.h millrace.map millrace.pc.in LICENSE README.md "
    "base image shards ingest loader device train"
).split()


def _check_system() -> None:
    programs = {"cc": "build-essential", "cmake": "cmake", "ninja": "ninja-build", "pkg-config": "pkg-config"}
    missing = [package for program, package in programs.items() if shutil.which(program) is None]
    if "pkg-config" not in missing:
        missing += [
            package
            for name, package in _NEEDED.items()
            if subprocess.run(["pkg-config", "--exists", name], check=False).returncode
        ]
    if missing:
        raise SystemExit(f"millrace: to build it, these packages are missing: apt-get install {' '.join(missing)}")


def build_wheel(directory: str, settings: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    _check_system()
    return _build.build_wheel(directory, settings, metadata)


def build_sdist(directory: str, settings: dict[str, Any] | None = None) -> str:
    """The sdist of a copy of this package with the sources of millrace in core/."""
    root, package = find_root(), pathlib.Path.cwd()
    directory = os.path.abspath(directory)
    ignore = shutil.ignore_patterns("__pycache__", "build", "dist", "*.so", ".*")
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "millrace"
        shutil.copytree(package, copy, ignore=ignore)
        if not (copy / "core").exists():
            (copy / "core").mkdir()
            for name in _SOURCES:
                if (root / name).is_dir():
                    shutil.copytree(root / name, copy / "core" / name, ignore=ignore)
                else:
                    shutil.copy(root / name, copy / "core" / name)
        os.chdir(copy)
        try:
            return _build.build_sdist(directory, settings)
        finally:
            os.chdir(package)
