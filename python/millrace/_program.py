"""The program millrace as a child process: ingest, verify, export and every other command.

Invariant: what the program does to signals, MPI and crashes stays in the child; it prints nothing here, and sees no
variable of a launcher that started this process.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import operator
import os
import re
import shutil
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any, Literal, TypedDict, Unpack

from ._checks import choose
from ._dataset import Dataset, Path
from ._errors import MisuseError, SystemFailure, from_exit_code
from ._options import ExportOptions, IngestOptions, ViewOptions
from ._rewrite import path_text

__all__ = ["VerifyReport", "cli", "export", "ingest", "verify", "view"]

Progress = Callable[[str, int, int], None]

_LEVELS = {"quick": 0, "full": 1, "deep": 2, "decode": 3}
_LAUNCHER_PREFIXES = ("OMPI_", "PMIX_", "PMI_", "SLURM_", "PRTE_", "MPI_LOCAL", "HYDRA_")


class VerifyReport(TypedDict):
    """What `verify` found (docs/verify.md, "JSON")."""

    ok: bool  #: everything that was checked is as it was ingested
    whole: bool
    digest: str
    problems: list[dict[str, Any]]  #: each with its shard, kind and message
    damaged: list[dict[str, Any]]  #: the shards with problems, and how many of their samples are hit


def find_program() -> str:
    """The path of the program: MILLRACE_BIN, the one inside the package, or the one in PATH."""
    inside = os.path.join(os.path.dirname(__file__), "bin", "millrace")
    for path in (os.environ.get("MILLRACE_BIN"), inside if os.path.exists(inside) else None, shutil.which("millrace")):
        if path:
            return path
    raise SystemFailure("millrace: the program was not found: install the package with it, or set MILLRACE_BIN")


def child_environment() -> dict[str, str]:
    """This process's environment without the variables by which a launcher would be seen again in the child."""
    hidden = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
    return {n: v for n, v in os.environ.items() if not n.startswith(_LAUNCHER_PREFIXES) and n not in hidden}


def option_words(options: Mapping[str, Any]) -> list[str]:
    """Keyword options as the program's: jobs=4 -> --jobs=4, force=True -> --force, split_map={"test": "val"} -> ...

    A list gives the option once per item; None and False leave it out.
    """
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, Mapping):
            words.append(f"{option}={','.join(f'{key}={item}' for key, item in value.items())}")
        elif isinstance(value, (list, tuple)):
            words += [f"{option}={os.fspath(item) if isinstance(item, os.PathLike) else item}" for item in value]
        else:
            words.append(f"{option}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return words


def _sentence_first(printed: str) -> str:
    """What the program printed to stderr, with its closing sentence before the details."""
    lines = [line for line in printed.splitlines() if line.strip() and not line.startswith("Try 'millrace")]
    sentences = [line for line in lines if re.match(r"millrace( [a-z]+)?: ", line)]
    details = [line for line in lines if line not in sentences]
    return "\n".join([re.sub(r"^millrace( [a-z]+)?: ", "", line) for line in sentences] + details)


class Run:
    """One run of the program. Its output is collected by threads, so that no pipe fills up."""

    def __init__(self, words: Sequence[str], *, progress: Progress | None = None, stdin: int | None = None) -> None:
        inherited: tuple[int, ...] = ()
        words = [find_program(), *words]
        if progress is not None:
            read_end, write_end = os.pipe()
            words.append(f"--progress-fd={write_end}")
            inherited = (write_end,)
        try:
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=inherited,
                env=child_environment(),
            )
        except OSError as error:
            if progress is not None:
                os.close(read_end)
            raise SystemFailure(f"{words[0]}: cannot be started: {os.strerror(error.errno or 0)}") from None
        finally:
            for fd in inherited:
                os.close(fd)
        self._output: dict[str, bytes] = {}
        self._progress = progress
        self._lines: IO[bytes] | None = os.fdopen(read_end, "rb") if progress is not None else None
        self._readers = [
            threading.Thread(target=self._collect, args=(name, stream), daemon=True)
            for name, stream in (("stdout", self.process.stdout), ("stderr", self.process.stderr))
        ]
        for reader in self._readers:
            reader.start()

    def _collect(self, name: str, stream: IO[bytes]) -> None:
        self._output[name] = stream.read()
        stream.close()

    def _follow(self) -> None:
        """Calls `progress` in the caller's thread until the child has closed its end."""
        assert self._lines is not None and self._progress is not None
        with self._lines:
            for line in self._lines:
                step = json.loads(line)
                self._progress(step["step"], step["done"], step["total"])

    def finish(self) -> tuple[int, str, str]:
        """(exit code, stdout, the message). Whatever interrupts the wait ends the child, which cleans up after itself."""
        try:
            if self._lines is not None:
                self._follow()
            code = self.process.wait()
        except BaseException:
            self.stop()
            raise
        for reader in self._readers:
            reader.join()
        message = _sentence_first(self._output["stderr"].decode(errors="replace"))
        if code < 0:
            message = message or f"the program was ended by signal {-code}"
        return code, self._output["stdout"].decode(errors="replace"), message

    def stop(self) -> None:
        """Ends the child as Ctrl-C does, and waits for it."""
        self.process.terminate()
        self.process.wait()
        for reader in self._readers:
            reader.join()


def _run(words: Sequence[str], progress: Progress | None = None) -> str:
    code, output, message = Run(words, progress=progress).finish()
    if code:
        raise from_exit_code(code, message)
    return output


class _Bar:
    """A bar of tqdm for each step."""

    def __init__(self) -> None:
        try:
            self._new = importlib.import_module("tqdm.auto").tqdm
        except ImportError:
            raise MisuseError("progress: True draws with tqdm, which is not installed; pass a function instead") from None
        self._bar: Any = None
        self._step = ""

    def __call__(self, step: str, done: int, total: int) -> None:
        if step != self._step:
            self.close()
            self._bar = self._new(desc=step, unit="", unit_scale=True)
            self._step = step
        self._bar.total = total or None
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def ingest(*sources: Path, to: Path, progress: Progress | Literal[True] | None = None, **options: Unpack[IngestOptions]) -> Dataset:
    """Turns image datasets into shards, as `millrace ingest SRC... DATASET`, and opens the result.

    Args:
        sources: folders and archives; several are laid over one another as one tree.
        to: the dataset's folder; it must not exist yet (or pass force=True) and appears whole, at the end.
        progress: called with (step, done, total) a few times per second; True: a bar of tqdm for each step.
        options: the program's, by keyword: layout="coco", jobs=4, split_map={"test": "val"}, max_rejects="2%",
            exclude=["a", "b"], fail_on_leak=True ...; `millrace ingest --help` lists them.

    Warns:
        what the program would print: rejected images, leaks between splits, files left out; all of it is in `report` of the
        dataset.

    Raises:
        BadDataError: the source is damaged, or too many images are.
        MisuseError: an option is invalid, or `to` exists.

    >>> import millrace
    >>> millrace.ingest("flowers-source", to="flowers-copy", jobs=2)
    millrace.Dataset('flowers-copy', train: 84, val: 36, 10 classes)
    """
    if not sources:
        raise MisuseError("sources: pass a folder or an archive, or several")
    if "dry_run" in options:
        raise MisuseError("dry_run: there is no dataset to open; run `millrace ingest --dry-run`")
    words = ["ingest", *(os.fspath(source) for source in sources), os.fspath(to), "--quiet", *option_words(options)]
    if progress is True:
        with contextlib.closing(_Bar()) as bar:
            _run(words, bar)
    else:
        _run(words, progress)
    dataset = Dataset(to)
    warn_of(dataset, "millrace.ingest", stacklevel=3)
    return dataset


def warn_of(dataset: Dataset, caller: str, stacklevel: int) -> None:
    """Warns of what the source's owner has to decide, and of remarks, with the first file of each."""
    report = dataset.report
    remarks = [note for note in report.get("notes", ()) if "left out by --" not in note["reason"]]
    found = [(note["count"], note["what"], report.get(note["kind"])) for note in report.get("decide", ())]
    if remarks:
        found.append((len(remarks), "remark" if len(remarks) == 1 else "remarks", remarks))
    parts = []
    for count, what, listed in found:
        where = f" ({listed[0]['file']}: {listed[0]['reason']})" if listed else ""
        parts.append(f"{count} {what}{where}")
    if parts:
        warnings.warn(f"{caller}: {dataset.path}: {'; '.join(parts)}; see .report", stacklevel=stacklevel)


def _ranges(samples: Iterable[int]) -> str:
    """Numbers of samples as the program takes them, ascending: 0-99,105."""
    words: list[str] = []
    first = last = -1
    for number in sorted({operator.index(number) for number in samples}):
        if first >= 0 and number == last + 1:
            last = number
            continue
        if first >= 0:
            words.append(f"{first}-{last}" if last > first else str(first))
        first = last = number
    if first >= 0:
        words.append(f"{first}-{last}" if last > first else str(first))
    return ",".join(words)


def view(to: Path, *datasets: Path | Dataset, **options: Unpack[ViewOptions]) -> Dataset:
    """Writes a view of datasets (or of views), as `millrace view OUT DATASET...`, and opens it (docs/views.md).

    Args:
        to: the file; an existing view is replaced with force=True only.
        datasets: paths, with ":SPLIT" added for one split, or open datasets.
        options: the program's conditions, by keyword: classes=["rose"], samples=[0, 5, 7] (or any integers, such as a
            range or an array), fold="1/5", first=100, column=("licence", "CC0"), drop="takedown.tsv",
            rename_class={"tulipa": "tulip"}, split={"val": "test"}, weight={"flowers": 2.0}, balance="class", repeat=3.

    Raises:
        MisuseError: no sample meets the conditions, or one of them is invalid.
        BadDataError: a dataset is damaged.

    >>> import millrace
    >>> millrace.view("few.view", "flowers:train", samples=range(10))
    millrace.Dataset('few.view', train: 10, 10 classes)
    """
    sources = [one.path if isinstance(one, Dataset) else os.fspath(one) for one in datasets]
    chosen: dict[str, Any] = dict(options)
    with tempfile.NamedTemporaryFile("w", prefix="millrace-samples-") as numbers:
        if "samples" in chosen:
            numbers.write(_ranges(chosen["samples"]))
            numbers.flush()
            chosen["samples"] = "@" + numbers.name
        if "classes" in chosen:
            names = chosen.pop("classes")
            names = [names] if isinstance(names, str) else names
            chosen["class"] = ",".join(path_text(name).replace(",", "\\,") for name in names)
        if isinstance(chosen.get("column"), str):
            raise MisuseError("column: pass a name and a value, (NAME, VALUE)")
        if "column" in chosen:
            chosen["column"] = "=".join(chosen["column"])
        for name in ("rename_class", "split", "weight", "at"):
            if name in chosen:
                chosen[name] = [f"{os.fspath(key)}={value}" for key, value in chosen[name].items()]
        _run(["view", os.fspath(to), *sources, *option_words(chosen)], None)
    return Dataset(to)


def verify(
    path: Path,
    *,
    level: Literal["quick", "full", "deep", "decode"] = "full",
    expect: str | None = None,
    jobs: int | None = None,
) -> VerifyReport:
    """Checks that a dataset is intact, as `millrace verify`. Damage is a result, not an exception.

    Raises:
        MisuseError: there is no dataset.
        SystemFailure: it cannot be read.

    >>> import millrace
    >>> millrace.verify("flowers")["ok"]
    True
    """
    choose("level", _LEVELS, level)
    chosen = [] if level == "full" else [f"--{level}"]
    words = ["verify", os.fspath(path), "--json", *chosen, *option_words({"expect": expect, "jobs": jobs})]
    code, output, message = Run(words).finish()
    if not output.startswith("{"):
        raise from_exit_code(code, message)
    report: VerifyReport = json.loads(output)
    return report


def export(path: Path, destination: Path, **options: Unpack[ExportOptions]) -> None:
    """Writes a dataset's samples as files, as `millrace export DATASET OUT`: a folder, or a tar if it ends in .tar.

    `to` names another format: imagenette, imagefolder, coco, yolo, voc, parquet, webdataset.

    >>> import millrace
    >>> millrace.export("flowers", "flowers.tar")
    """
    _run(["export", os.fspath(path), os.fspath(destination), *option_words(options)])


def cli(*arguments: str) -> int:
    """Runs the program with these arguments in this terminal; returns its exit code."""
    return subprocess.call([find_program(), *arguments])
