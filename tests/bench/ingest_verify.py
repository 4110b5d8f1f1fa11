#!/usr/bin/env python3
"""Ingest and verify beside what the machine can do: ratios in one run.

    tests/bench/ingest_verify.py [--images 8000] [--bytes 110000] [--rounds 5] [--dir FOLDER] [--webdataset]

Makes a folder of JPEGs (photographs from MILLRACE_DATA, default ../shared/data, where it is there, else drawn ones; each
with a comment of its own, so that no two are equal), reads it once so that it is warm, and then measures alternately
(A B A B ...), wall and CPU seconds, medians:
    ingest --jobs 2, fsync included    against   cp -r of the folder, then sync -f
    verify --no-sha256, verify         against   cat FILES >/dev/null
    show one of a million samples (opening the dataset is in it), against a program that only starts: CPU time
--webdataset measures webdataset's ShardWriter too, in a virtual environment made for it (needs a package index).
"""
import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from photos import MILLRACE, drawn, make_source, photographs

SHARDWRITER = """
import os, sys, webdataset
with webdataset.ShardWriter(os.path.join(sys.argv[2], "shard-%05d.tar"), maxsize=256 << 20, verbose=0) as out:
    for label, name in enumerate(sorted(os.listdir(sys.argv[1]))):
        folder = os.path.join(sys.argv[1], name)
        for file in sorted(os.listdir(folder)):
            with open(os.path.join(folder, file), "rb") as image:
                out.write({"__key__": name + "_" + file.split(".")[0], "jpg": image.read(), "cls": label})
"""


def timed(command, **keywords):
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **keywords)
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def turns(rounds, jobs):
    """jobs: name -> (before(), command); returns name -> (median wall, median cpu)."""
    times = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, (before, command) in jobs.items():
            before()
            times[name].append(timed(command))
    return {n: (statistics.median(t[0] for t in v), statistics.median(t[1] for t in v)) for n, v in times.items()}


def row(name, result, base, total):
    wall, cpu = result[name]
    print("  %-34s %8.3f s wall %8.3f s cpu %8.2f GB/s cpu   %5.2f x of %s" %
          (name, wall, cpu, total / max(cpu, 1e-9) / 1e9, wall / result[base][0], base))


def open_a_million(work, rounds):
    """A million rows that show one picture: the cost of opening does not depend on pictures."""
    source, target = os.path.join(work, "rows"), os.path.join(work, "million")
    subprocess.run([MILLRACE, "sample", source + "-drawn", "--layout", "imagenette", "--images", "20", "--quiet"], check=True)
    image = next(os.path.join(p, f) for p, _, fs in os.walk(source + "-drawn") for f in fs if f.endswith("JPEG"))
    os.makedirs(os.path.join(source, "matching"))
    os.makedirs(os.path.join(source, "all_contest_images"))
    shutil.copy(image, os.path.join(source, "all_contest_images", "1.jpeg"))
    with open(os.path.join(source, "matching", "train.jsonl"), "w") as rows:
        rows.writelines('{"contest_number": 1, "label": "%s", "row": %d}\n' % ("ABCDE"[i % 5], i) for i in range(1000000))
    subprocess.run([MILLRACE, "ingest", source, target, "--quiet"], check=True)
    nothing = lambda: None
    result = turns(rounds, {"show one of a million": (nothing, [MILLRACE, "show", target, "train", "765432"]),
                            "millrace --version": (nothing, [MILLRACE, "--version"])})
    for name, (wall, cpu) in result.items():
        print("  %-34s %8.2f ms wall %7.2f ms cpu" % (name, wall * 1e3, cpu * 1e3))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=8000)
    parser.add_argument("--bytes", type=int, default=110000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", default=None)
    parser.add_argument("--webdataset", action="store_true")
    options = parser.parse_args()
    work = tempfile.mkdtemp(prefix="millrace-bench-", dir=options.dir)
    try:
        source, target, copy = (os.path.join(work, n) for n in ("source", "dataset", "copy"))
        pictures = photographs(options.bytes / 2, options.bytes - 20) or drawn(os.path.join(work, "drawn"))
        make_source(source, pictures, options.images, options.bytes)
        total = sum(os.path.getsize(os.path.join(p, f)) for p, _, fs in os.walk(source) for f in fs)
        print("%d images, %.0f MB, medians of %d turns" % (options.images, total / 1e6, options.rounds))

        def clean():
            for path in (target, copy):
                shutil.rmtree(path, ignore_errors=True)
            os.sync()

        jobs = {
            "cp -r; sync -f": (clean, ["sh", "-c", 'cp -r "$0" "$1" && sync -f "$1"', source, copy]),
            "ingest --jobs 2": (clean, [MILLRACE, "ingest", source, target, "--jobs", "2", "--quiet"]),
            "ingest --jobs 1": (clean, [MILLRACE, "ingest", source, target, "--jobs", "1", "--quiet"]),
        }
        if options.webdataset:
            venv = os.path.join(work, "venv")
            subprocess.run([sys.executable, "-m", "venv", venv], check=True)
            subprocess.run([venv + "/bin/pip", "install", "-q", "webdataset"], check=True)
            jobs["webdataset ShardWriter; sync -f"] = (
                lambda: (clean(), os.makedirs(copy)),
                ["sh", "-c", '"$0" -c "$1" "$2" "$3" && sync -f "$3"', venv + "/bin/python", SHARDWRITER,
                 os.path.join(source, "train"), copy])
        result = turns(options.rounds, jobs)
        for name in jobs:
            row(name, result, "cp -r; sync -f", total)
        if options.webdataset:
            print("  ingest --jobs 2 takes %.2f x of webdataset's time" %
                  (result["ingest --jobs 2"][0] / result["webdataset ShardWriter; sync -f"][0]))

        clean()
        subprocess.run([MILLRACE, "ingest", source, target, "--quiet"], check=True)
        files = [os.path.join(target, f) for f in sorted(os.listdir(target))]
        total = sum(map(os.path.getsize, files))
        nothing = lambda: None
        jobs = {
            "cat": (nothing, ["cat"] + files),
            "verify --no-sha256 --jobs 1": (nothing, [MILLRACE, "verify", target, "--no-sha256", "--jobs", "1", "--quiet"]),
            "verify --no-sha256 --jobs 2": (nothing, [MILLRACE, "verify", target, "--no-sha256", "--jobs", "2", "--quiet"]),
            "verify --jobs 1": (nothing, [MILLRACE, "verify", target, "--jobs", "1", "--quiet"]),
            "verify --jobs 2": (nothing, [MILLRACE, "verify", target, "--jobs", "2", "--quiet"]),
        }
        result = turns(options.rounds, jobs)
        for name in jobs:
            row(name, result, "cat", total)
        open_a_million(work, options.rounds)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
