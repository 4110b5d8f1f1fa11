#!/usr/bin/env python3
"""hub.py - how fast Parquet files become shards, beside pyarrow that reads the same columns and writes files.

    hub.py MILLRACE [--python PYTHON] [--images FOLDER] [--mb 1000] [--files 2] [--rounds 3] [--dir DIR]

Makes Parquet files of about --mb in all (JPEG files of FOLDER, each row's bytes its own by a comment segment), warms the
page cache, and runs in turn, each from an empty target folder:

    files       PYTHON with pyarrow: all columns in batches, each image to a file of its own
    files+sync  the same, and the files on disk at the end, as shards are
    rows        parquet_rows.py alone, into /dev/null: what the reader takes without a pipe's other end
    ingest      millrace ingest, rows to verified shards on disk

Prints the median of each and the ratios; the pipe's share is what the reader takes longer into a pipe than into nothing.
Peak memory is that of millrace and of its reader together, sampled.  PYTHON needs pyarrow: python3 -m venv, pip install.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

MAKE = r"""
import pathlib, sys
import pyarrow as pa, pyarrow.parquet as pq
folder, out, megabytes, files, group = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
images = [p.read_bytes() for p in sorted(pathlib.Path(folder).rglob("*")) if p.suffix.lower() in (".jpg", ".jpeg")]
images = [b for b in images if b[:2] == b"\xff\xd8" and 20000 < len(b) < 400000]
if not images:
    sys.exit("no JPEG files of 20 to 400 kB in " + folder)
kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
schema = pa.schema([("image", kind), ("caption", pa.string()), ("label", pa.int64()), ("words", pa.list_(pa.string()))])
row = 0
for part in range(files):
    size = 0
    with pq.ParquetWriter(out / ("train-%05d-of-%05d.parquet" % (part, files)), schema) as writer:
        while size < megabytes * 1000000 // files:
            rows = []
            for _ in range(group):
                note = b"row %09d" % row
                jpeg = images[row % len(images)]
                jpeg = jpeg[:2] + b"\xff\xfe" + (len(note) + 2).to_bytes(2, "big") + note + jpeg[2:]
                rows.append({"image": {"bytes": jpeg, "path": "%09d.jpg" % row}, "caption": "a picture, number %d" % row,
                             "label": row % 10, "words": ["one", "two", str(row)]})
                size += len(jpeg)
                row += 1
                if size >= megabytes * 1000000 // files:
                    break
            writer.write_table(pa.Table.from_pylist(rows, schema=schema), row_group_size=group)
print(row)
"""

FILES = r"""
import os, pathlib, sys
import pyarrow.parquet as pq
out, sync = pathlib.Path(sys.argv[2]), sys.argv[3] == "sync"
for part in sorted(pathlib.Path(sys.argv[1]).glob("*.parquet")):
    for batch in pq.ParquetFile(part).iter_batches(batch_size=100):
        images = batch.column("image")
        data, paths = images.field("bytes"), images.field("path")
        for i in range(batch.num_rows):
            with open(out / paths[i].as_py(), "wb", buffering=0) as f:
                f.write(data[i].as_buffer())
if sync:
    os.sync()
"""


def pss(pid):
    try:
        text = pathlib.Path("/proc/%d/smaps_rollup" % pid).read_text()
        return int(text.split("Pss:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        return 0


def tree(pid):
    out = [pid]
    try:
        for task in pathlib.Path("/proc/%d/task" % pid).iterdir():
            for child in (task / "children").read_text().split():
                out += tree(int(child))
    except OSError:
        pass
    return out


def run(argv, env=None, watch=False, stdout=subprocess.DEVNULL):
    """Seconds, CPU seconds of the process and its children, peak memory of all of them together."""
    before = os.times()
    start = time.monotonic()
    child = subprocess.Popen(argv, env=env, stdout=stdout)
    peak, ended = [0], threading.Event()

    def sample():
        while not ended.wait(0.02):
            peak[0] = max(peak[0], sum(pss(p) for p in tree(child.pid)))

    thread = threading.Thread(target=sample)
    if watch:
        thread.start()
    status = child.wait()
    seconds = time.monotonic() - start
    ended.set()
    if watch:
        thread.join()
    if status:
        sys.exit("%s: exit code %d" % (argv[0], status))
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, cpu, peak[0]


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("millrace")
    p.add_argument("--python", default=os.environ.get("MILLRACE_PYTHON", "python3"))
    p.add_argument("--images", default=str(pathlib.Path(__file__).resolve().parents[3] / "shared/data/images"))
    p.add_argument("--mb", type=int, default=1000)
    p.add_argument("--files", type=int, default=2)
    p.add_argument("--group", type=int, default=100, help="rows of a row group")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--jobs", default="")
    p.add_argument("--dir")
    a = p.parse_args()
    env = dict(os.environ, MILLRACE_PYTHON=a.python)
    script = pathlib.Path(__file__).resolve().parents[2] / "ingest/layout/hub/parquet_rows.py"
    with tempfile.TemporaryDirectory(dir=a.dir) as temp:
        work = pathlib.Path(temp)
        source, target = work / "source", work / "target"
        source.mkdir()
        rows = subprocess.run([a.python, "-c", MAKE, a.images, str(source), str(a.mb), str(a.files), str(a.group)],
                              check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        parts = sorted(source.iterdir())
        size = sum(f.stat().st_size for f in parts)
        print("%s rows, %d files, %.0f MB" % (rows, len(parts), size / 1e6))
        jobs = ["--jobs", a.jobs] if a.jobs else []
        shell = 'for f in "$@"; do %s %s "$f" || exit; done' % (a.python, script)
        kinds = {
            "files": [a.python, "-c", FILES, str(source), str(target), ""],
            "files+sync": [a.python, "-c", FILES, str(source), str(target), "sync"],
            "rows": ["sh", "-c", shell, "sh", *map(str, parts)],
            "rows|cat": ["sh", "-c", "(%s) | cat >/dev/null" % shell, "sh", *map(str, parts)],
            "ingest": [a.millrace, "ingest", str(source), str(target), "--quiet", *jobs],
            "watched": [a.millrace, "ingest", str(source), str(target), "--quiet", *jobs],
        }
        results = {}
        for number in range(a.rounds):
            for kind, argv in kinds.items():
                if kind == "watched" and number:
                    continue            # looking at memory costs time: once is enough
                if not kind.startswith("rows") and kind not in ("ingest", "watched"):
                    target.mkdir()
                os.sync()
                results.setdefault(kind, []).append(run(argv, env, watch=kind == "watched"))
                shutil.rmtree(target, ignore_errors=True)
        median = {k: statistics.median(s for s, _, _ in v) for k, v in results.items()}
        for kind, v in results.items():
            print("%-11s %6.2f s  %6.2f CPU s  %7.1f MB/s%s" % (
                kind, median[kind], statistics.median(c for _, c, _ in v), size / 1e6 / median[kind],
                "  peak %.0f MB in all" % (v[0][2] / 1e6) if v[0][2] else ""))
        print("ingest / files %.2f, ingest / files+sync %.2f" % (
            median["ingest"] / median["files"], median["ingest"] / median["files+sync"]))
        print("the pipe: %.0f %% of the ingest (reader into cat %.2f s, into nothing %.2f s)" % (
            100 * (median["rows|cat"] - median["rows"]) / median["ingest"], median["rows|cat"], median["rows"]))


if __name__ == "__main__":
    main()
