#!/usr/bin/env python3
"""What the Python package costs its caller, alternating with `millrace bench` on the same files.

    scripts/bench/python-bench [--images 2000] [--rounds 3] [--json FILE]

- the caller's CPU time per batch of 64: float32 tensors of 224 pixels, and encoded files; beside it, of the call into C alone
- CPU time per image of the whole process, and its ratio to `millrace bench`: A B A B ...
- milliseconds from `import millrace` to the first batch, in a process that has imported torch
- with --targets DATASET, which has boxes and polygons, such as COCO, instead: CPU time per image of crops of 224 pixels with
  boxes, polygons and drawn masks, and its ratio to the images alone

Medians over the rounds. scripts/bench/peers compares with other loaders.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time

from photos import MILLRACE, make_dataset

BATCH = 64
FIRST = """
import sys, time
import torch
begun = time.monotonic()
import millrace
loader = millrace.Dataset(sys.argv[1]).loader("train", 64, shuffle=True, threads=2)
images, labels = next(iter(loader))
assert images.shape == (64, 3, 224, 224)
print((time.monotonic() - begun) * 1e3)
"""


def walk(dataset, output, array, seconds, alone=False):
    """(the caller's CPU seconds per batch, the process's CPU milliseconds per image), after a warm start.

    `alone`: of the call into C only, without arrays; no caller's loop can take less.
    """
    import millrace

    loader = millrace.Dataset(dataset).loader("train", BATCH, shuffle=True, threads=1, output=output, array=array)
    per_batch, begun, warm, batches = [], time.monotonic(), True, 0
    while True:
        it = loader._open() if alone else iter(loader)
        while True:
            before = time.thread_time()
            batch = next(it, None)
            spent = time.thread_time() - before
            if batch is None:
                break
            if warm:
                if time.monotonic() - begun > 1:
                    warm, batches, started, begun = False, 0, time.process_time(), time.monotonic()
                continue
            batches += 1
            per_batch.append(spent)
            if time.monotonic() - begun > seconds and batches > 8:
                cpu = time.process_time() - started
                loader.close()
                return statistics.median(per_batch), cpu / (batches * BATCH) * 1e3


TARGETS = {"images alone": (), "boxes": ("boxes",), "boxes, classes, polygons": ("boxes", "classes", "polygons"), "mask": ("mask",)}


def measure_targets(dataset, options):
    """CPU microseconds per image with each of TARGETS, and ratios to the first."""
    import millrace

    split = max(millrace.Dataset(dataset).values(), key=len)
    items = list(range(len(split))) * max(1, options.images // len(split))
    taken = {name: [] for name in TARGETS}
    for _ in range(options.rounds):
        for name, fields in TARGETS.items():
            loader = millrace.Loader(split, BATCH, shuffle=True, threads=1, view=millrace.Crop(224), items=items, array="numpy",
                                     fields=("image", *fields))
            for _ in loader:                                               # warm
                pass
            count, cpu, begun = 0, time.process_time(), time.monotonic()
            while time.monotonic() - begun < options.seconds:
                count += sum(len(batch[0]) for batch in loader)
            taken[name].append((time.process_time() - cpu) / count * 1e6)
            loader.close()
    alone = taken["images alone"]
    return {name: (statistics.median(us), statistics.median(a / b for a, b in zip(us, alone))) for name, us in taken.items()}


def bench(dataset, seconds):
    words = [MILLRACE, "bench", dataset, "--stage", "input", "--threads", "1", "--size", "224", "--seconds", str(seconds)]
    out = subprocess.run(words + ["--json"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out)["cpu_ms_per_image"]


def first_batch(dataset):
    out = subprocess.run([sys.executable, "-c", FIRST, dataset], check=True, stdout=subprocess.PIPE, text=True).stdout
    return float(out)


def measure(dataset, options):
    try:
        import torch
        array = "torch"
        torch.set_num_threads(1)
    except ImportError:
        array = "numpy"
    seen = {"caller_us_float32": [], "caller_us_encoded": [], "cpu_ms_per_image": [], "bench_cpu_ms": [], "first_ms": []}
    for _ in range(options.rounds):
        seen["bench_cpu_ms"].append(bench(dataset, options.seconds))
        caller, cpu = walk(dataset, "float32", array, options.seconds)
        seen["caller_us_float32"].append(caller * 1e6)
        seen["cpu_ms_per_image"].append(cpu)
        for output in "float32", "encoded":
            alone = walk(dataset, output, array, options.seconds, alone=True)[0]
            seen.setdefault("c_us_" + output, []).append(alone * 1e6)
        seen["caller_us_encoded"].append(walk(dataset, "encoded", array, options.seconds)[0] * 1e6)
        if array == "torch":
            seen["first_ms"].append(first_batch(dataset))
    result = {name: statistics.median(values) for name, values in seen.items() if values}
    result["cpu_ratio"] = statistics.median(a / b for a, b in zip(seen["cpu_ms_per_image"], seen["bench_cpu_ms"]))
    return {"array": array, **result}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--targets", metavar="DATASET")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.targets:
        for name, (us, ratio) in measure_targets(options.targets, options).items():
            print(f"{name:26} {us:6.0f} us per image  {ratio:.3f}")
        return
    with tempfile.TemporaryDirectory() as work:
        dataset, kind = make_dataset(work, options.images)
        result = measure(dataset, options)
    print("%d JPEGs (%s), batches of 64, %s, medians of %d rounds" %
          (options.images, kind, result["array"], options.rounds))
    for output in "float32", "encoded":
        print("caller's CPU per batch    %-8s %.0f us; the call into C alone %.0f us" %
              (output, result["caller_us_" + output], result["c_us_" + output]))
    print("process's CPU per image   %.4f ms, %.3f of millrace bench (%.4f ms)" %
          (result["cpu_ms_per_image"], result["cpu_ratio"], result["bench_cpu_ms"]))
    if "first_ms" in result:
        print("first batch               %.0f ms after torch was imported" % result["first_ms"])
    if options.json:
        with open(options.json, "w") as out:
            json.dump(result, out, indent=1)


if __name__ == "__main__":
    main()
