#!/usr/bin/env python3
"""Trains in two runs, the second resumed from the first one's checkpoint, and compares what the tensorboard package
reads with the lines of --log.

    read_with_tensorboard.py MILLRACE      exit status 77 (skipped) where python has no tensorboard
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    print("skipped: python has no module tensorboard")
    sys.exit(77)

TRAIN = {"train/loss": "loss", "train/lr": "lr", "train/images_per_sec": "images_per_sec", "train/wait_ms": "wait_ms"}
TEST = {"test/loss": "eval_loss", "test/accuracy": "eval_accuracy"}


def run(*args):
    subprocess.run(args, check=True, stdout=subprocess.PIPE)


def lines_of(log, member):
    """Each update once, in order, as {step: line}."""
    with open(log) as f:
        lines = [line for line in map(json.loads, f) if member in line]
    steps = [line["step"] for line in lines]
    assert steps == sorted(set(steps)), (member, steps)
    return {line["step"]: line for line in lines}


def compare(events, tag, lines, member):
    scalars = events.Scalars(tag)
    assert [s.step for s in scalars] == list(lines), (tag, [s.step for s in scalars], list(lines))
    for s in scalars:
        value = lines[s.step][member]
        # Times and rates have 7 digits in the log, all values are float32 in the events.
        assert abs(s.value - value) <= 6e-7 * abs(value) + 1e-37, (tag, s.step, s.value, value)
        assert s.wall_time > 1.5e9
    return len(scalars)


def main(millrace):
    with tempfile.TemporaryDirectory() as work:
        source, dataset, out, log = (os.path.join(work, n) for n in ("source", "dataset", "out", "run.jsonl"))
        run(millrace, "sample", source, "--layout", "imagenette", "--images", "48", "--quiet")
        run(millrace, "ingest", source, dataset, "--quiet")
        train = [millrace, "train", dataset, "--model", "vit", "--hidden", "16", "--layers", "1", "--heads", "2", "--mlp",
                 "32", "--patch", "8", "--image-size", "32", "--batch", "8", "--steps", "9", "--eval-every", "3",
                 "--threads", "1", "--output", out, "--log", log]
        run(*train, "--stop-after", "6")
        # What a run says that is killed after its checkpoint: nothing of it may be left after a resume.
        with open(log, "a") as f:
            f.write('{"step": 7, "loss": 99, "lr": 99, "grad_norm": 99}\n')
        tensorboard = os.path.join(out, "tensorboard")
        first = os.path.join(tensorboard, os.listdir(tensorboard)[0])
        killed(first)
        run(*train, "--resume")

        events = EventAccumulator(tensorboard, size_guidance={"scalars": 0})
        events.Reload()
        assert sorted(events.Tags()["scalars"]) == sorted([*TRAIN, *TEST]), events.Tags()
        updates, evaluations = lines_of(log, "loss"), lines_of(log, "eval_loss")
        assert list(updates) == list(range(1, 10)) and list(evaluations) == [3, 6, 9]
        count = sum(compare(events, tag, updates, member) for tag, member in TRAIN.items())
        count += sum(compare(events, tag, evaluations, member) for tag, member in TEST.items())
        assert len(os.listdir(tensorboard)) == 2
        print("compared %d scalars" % count)


def killed(path):
    """Adds update 7 of a run that was killed then, and half of update 8, by tensorboard's own words for them."""
    from tensorboard.compat.proto import event_pb2
    from tensorboard.summary.writer.record_writer import RecordWriter
    event = event_pb2.Event(wall_time=2e9, step=7)
    event.summary.value.add(tag="train/loss", simple_value=99)
    with open(path, "ab") as f:
        RecordWriter(f).write(event.SerializeToString())
        f.write(struct.pack("<Q", 100) + b"half")


if __name__ == "__main__":
    main(sys.argv[1])
