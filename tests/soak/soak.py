#!/usr/bin/env python3
"""Ingest, verify, replay, train, kill and resume by chance, and look each time whether the promises were kept.

    tests/soak/soak.py MINUTES [SEED[:ROUND]]        (scripts/soak builds first; MILLRACE_BIN, MILLRACE_SOAK_LOADER)

A round draws a dataset and its parameters from (seed, round) and checks, with SIGKILL at a moment by chance where it
says so:
    ingest   folder or archive, any jobs, 1 to 3 ranks, killed and run again: equal files, nothing else beside them
    verify   clean in every mode; a lost index comes back bit for bit; export gives the source's images again
    replay   equal digests for any ranks and threads
    train    labels, or pictures and words; killed and resumed: checkpoints and log are those of the run that was left
             alone, to the bit
    predict  equal text from both runs, and equal judgement by any number of ranks
    flat     memory, descriptors and threads of an ingest, of a trainer over its updates, and of many loaders
After each command: no process of it, nothing of ours in TMPDIR or /dev/shm; after each round: nothing unknown in its
folder.  Exit code 1 and a kept folder on the first broken promise, and on whatever else ends the soak before its time.
"""
import collections
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tarfile
import tempfile
import time
import traceback
import zipfile

from soak_process import MILLRACE, Broken, Folder, check, check_flat

LOADER = os.environ.get("MILLRACE_SOAK_LOADER", "build/release/soak_loader")
LAYOUTS = ["imagenette", "imagenette --simple", "roboflow --variant folder", "roboflow --variant multi-class",
           "roboflow --variant coco", "roboflow --variant clip", "coco", "newyorker"]
LABELLED = {"imagenette", "imagenette --simple", "roboflow --variant folder", "roboflow --variant clip", "newyorker"}
WORDS = {"newyorker": "image_description", "coco": "captions"}


def files(folder):
    """name -> SHA-256, of all files under a folder."""
    found = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


def same(a, b, words):
    if a != b:
        names = sorted(n for n in set(a) | set(b) if a.get(n) != b.get(n))
        raise Broken("%s: %d files differ, first %s" % (words, len(names), names[0]))


# ---- the parts of a round --------------------------------------------------------------------------------------------

def pack(folder, source, kind):
    """The source tree as an archive, its members in random order; where it holds archives already, as it is."""
    names = sorted(files(source))
    if any(name.endswith(".zip") for name in names):
        return "source"
    folder.chance.shuffle(names)
    path = folder.at("source." + kind)
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                archive.write(os.path.join(source, name), name)
    else:
        with tarfile.open(path, "w:gz" if kind == "tgz" else "w") as archive:
            for name in names:
                archive.add(os.path.join(source, name), name)
    return os.path.basename(path)


def ingest(f, layout, images, size):
    chance = f.chance
    f.run("sample", "source", "--layout", *layout.split(), "--images", images, "--size", size, "--seed",
          chance.randrange(1 << 30), "-q")
    options = ["--shard-size", chance.choice(["64KiB", "256KiB", "1MiB", "256MiB"])]
    if chance.random() < 0.3:
        options += ["--shuffle", chance.randrange(1000)]
    if chance.random() < 0.3:
        options += ["--check", "decode"]
    started = time.monotonic()
    f.run("ingest", "source", "data", "-q", "-j", chance.randint(1, 4), *options, ranks=chance.choice([1, 1, 2, 3]))
    took = time.monotonic() - started
    source = chance.choice(["source", pack(f, f.at("source"), chance.choice(["tar", "tgz", "zip"]))])
    again = ["ingest", source, "again", "-q", "-j", chance.randint(1, 4), *options]
    last, attempts = chance.choice([1, 1, 2, 3]), [chance.choice([1, 2, 3]) for _ in range(chance.randint(1, 3))]
    while attempts and not os.path.exists(f.at("again")):
        f.run_killed(*again, ranks=attempts.pop(), seconds=took)
    if os.path.exists(f.at("again")):
        f.run("verify", "again", "--quiet")
    else:
        f.run(*again, ranks=last)
    same(files(f.at("data")), files(f.at("again")), "ingest of %s, killed and run again" % source)


def verify(f):
    chance = f.chance
    digest = json.loads(f.run("inspect", "data", "--json"))["digest"]
    modes = chance.sample(["--deep", "--decode", "--no-sha256"], chance.randint(0, 2))
    f.run("verify", "data", "--expect", digest, *modes, "--quiet", ranks=chance.choice([1, 2, 3]))
    before = files(f.at("again"))
    index = chance.choice([name for name in before if name.endswith(".idx")])
    os.unlink(f.at("again", index))
    f.run("reindex", "again")
    same(before, files(f.at("again")), "reindex of %s" % index)
    f.run("export", "data", "exported", "--quiet")
    source, exported = set(files(f.at("source")).values()), files(f.at("exported"))
    for name in files(f.at("source")):
        if name.endswith(".zip"):
            with zipfile.ZipFile(f.at("source", name)) as archive:
                source |= {hashlib.sha256(archive.read(member)).hexdigest() for member in archive.namelist()}
    images = {n: h for n, h in exported.items() if n.endswith((".jpg", ".jpeg", ".png", ".webp", ".JPEG"))}
    check(images, "export wrote no image")
    for name, digest in images.items():
        check(digest in source, "export: %s is not a file of the source", name)


def replay(f):
    chance = f.chance
    batch = chance.choice([6, 12, 24])
    options = ["replay", "data", "--global-batch", batch, "--tail", chance.choice(["drop", "pad", "partial"]), "--seed",
               chance.randrange(1000), "--epoch", chance.randrange(3), "--batches", chance.choice(["0", "0:"])]
    if chance.random() < 0.8:
        options += ["--size", chance.choice([16, 32, 80]), "--augment", chance.choice(["train", "eval", "center"]),
                    "--deliver", chance.choice(["u8", "f32", "bf16"])]
    texts = [f.run(*options, "--ranks", r, "--threads", chance.randrange(4)) for r in (1, 2, 3)]
    texts.append(f.run(*options, "--threads", chance.randrange(3), ranks=chance.choice([2, 3])))
    check(texts[0].startswith("step"), "replay printed no step")
    check(all(text == texts[0] for text in texts), "replay: digests differ by ranks or threads: %s", options)


def checkpoints(path):
    """What a run leaves of its checkpoints; TensorBoard files and results have times in them."""
    for parent, folders, names in os.walk(path):
        for name in folders + names:
            check(".tmp" not in name, "%s is left in %s", name, parent)
    found = {name: digest for name, digest in files(path).items() if name.startswith("step-")}
    check(found, "%s has no checkpoint", path)
    for name in found:
        if os.path.basename(name) == "state.json":
            with open(os.path.join(path, name)) as file:
                state = json.load(file)
            del state["seal"]
            for option in ("threads", "exchange"):           # as each run had its own
                del state["facts"]["options"][option]
            found[name] = state
    return found


def begun(path):
    return os.path.isdir(path) and any(name.startswith("step-") for name in os.listdir(path))


def course(path):
    """A log without its seconds."""
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    return {(line["step"], key): value for line in lines for key, value in line.items()
            if key in ("loss", "grad_norm", "lr", "samples") or key.startswith("eval_")}


def model(chance):
    return ["--model", "vit", "--image-size", 32, "--patch", chance.choice([8, 16]), "--hidden", 32, "--layers",
            chance.randint(1, 2), "--heads", 2, "--mlp", 64, "--optimizer", chance.choice(["sgd", "adamw"]),
            *chance.choice([[], ["--flip"]])]


def model_of_words(f, data, column):
    """The smallest BridgeTower, with a tokenizer learned from the dataset's own words."""
    chance = f.chance
    f.run("tokenizer", data, "--text-column", column, "--size", chance.choice([300, 400]), "--output", "tok.json",
          "--force", "-q")
    options = ["--model", "bridgetower", "--tokenizer", "tok.json", "--text-column", column, "--image-size", 32,
               "--patch", 16, "--hidden", 64, "--layers", chance.randint(1, 2), "--heads", 1, "--mlp", 64,
               "--cross-layers", 1, "--embed", 16, "--max-text", 16, "--lr", 0.001]
    more = chance.sample(["--unique-images", "--gather-negatives"], chance.randint(0, 2))
    # Some pictures have no caption: those are not pairs, and without it they would be bad data.
    return options + more + ["--expand-captions"] * (column == "captions")


def train(f, shape):
    chance = f.chance
    world, steps = chance.choice([1, 1, 2, 3]), chance.randint(6, 24)
    options = shape + ["--batch", chance.randint(2, 6), "--grad-accum", chance.randint(1, 2), "--steps", steps,
                       "--dropout", chance.choice([0, 0.1]), "--eval-every", chance.randint(1, 5),
                       "--keep", chance.choice([0, 1, 2]), "--decay", chance.choice(["cosine", "linear", "none"]),
                       *chance.choice([[], ["--checkpoint-every", chance.randint(1, 4)]]),
                       "--quiet", "--seed", chance.randrange(1000)]
    how = lambda: ["--threads", chance.randint(1, 3), "--exchange", chance.choice(["flat", "buckets"])]
    started = time.monotonic()
    f.run("train", "data", *options, *how(), "--output", "whole", "--log", "whole.jsonl", ranks=world)
    took = time.monotonic() - started
    killed = ["train", "data", *options, "--output", "killed", "--log", "killed.jsonl"]
    f.run_killed(*killed, *how(), ranks=world, seconds=took)
    # Once there is a checkpoint, it has the options too.
    alone = killed[:2] + ["--output", "killed", "--log", "killed.jsonl", "--quiet"]
    again = lambda: chance.choice([killed, alone]) if begun(f.at("killed")) else killed
    for _ in range(chance.randint(0, 2)):
        f.run_killed(*again(), *how(), "--resume", ranks=world, seconds=took)
    f.run(*again(), *how(), "--resume", ranks=world)
    same(checkpoints(f.at("whole")), checkpoints(f.at("killed")), "train, killed and resumed")
    same(course(f.at("whole.jsonl")), course(f.at("killed.jsonl")), "the log of train, killed and resumed")


def judge(f):
    """Both runs foretell the same, and any number of ranks finds the same: the loss but for rounding."""
    chance = f.chance
    batch = ["--batch", chance.randint(1, 20)]
    texts = [f.run("predict", "data", run, *batch, "--threads", chance.randint(1, 3)) for run in ("whole", "killed")]
    check(texts[0].count("\n") > 1, "predict printed nothing")
    check(texts[0] == texts[1], "predict differs between the runs")
    results = [json.loads(f.run("eval", "data", "whole", "--json", *batch, ranks=ranks))
               for ranks in (1, chance.choice([2, 3]))]
    for result in results:
        del result["seconds"]
    a, b = (result.pop("loss") for result in results)
    check(results[0] == results[1] and abs(a - b) < 1e-5, "eval differs by ranks: %s, loss %s and %s", results, a, b)


# ---- what does not grow ----------------------------------------------------------------------------------------------

def flat_ingest(f, layout, images):
    chance, jobs = f.chance, f.chance.choice([1, 1, 3])
    f.run("sample", "many", "--layout", layout, "--images", images, "--size", 32, "--seed", chance.randrange(1000),
          "-q")
    looks = f.run_watched("ingest", "many", "many.data", "-q", "-j", jobs, "--shard-size", "64KiB")
    # A worker takes up to 4 MiB and 3 files of its own when it has the first picture of a split, which may be late.
    return check_flat(looks, "ingest of %d pictures by %d jobs" % (images, jobs), 4096 * jobs, 3 * jobs, jobs - 1)


def flat_train(f, shape, steps):
    chance, world = f.chance, f.chance.choice([1, 1, 2])
    looks = f.run_watched("train", "few.data", *shape, "--batch", 4, "--steps", steps, "--eval-every", steps // 15,
                          "--threads", chance.randint(1, 2), "--quiet", "--output", "flat", "--log", "flat.jsonl",
                          ranks=world)
    return check_flat(looks, "train of %d updates by %d ranks" % (steps, world), 2048, 2, 0)


def often_enough(f, watch, size, left):
    """A machine may be too fast, or too busy with others, for looks at a short work: then it is made longer."""
    for longer in (1, 2, 4, 8):
        for name in left:
            shutil.rmtree(f.at(name), ignore_errors=True)
        if watch(size * longer):
            return
    raise Broken("too few looks in /proc at what takes %d" % (8 * size))


def flat(f):
    layout = f.chance.choice(["imagenette", "newyorker"])
    ingested = lambda images: flat_ingest(f, layout, images)
    often_enough(f, ingested, 1500 if layout == "imagenette" else 300, ["many", "many.data"])
    # So few that an epoch is over, and every shard open, before the middle of the run.
    f.run("sample", "few", "--layout", layout, "--images", 40, "--size", 32, "-q")
    f.run("ingest", "few", "few.data", "-q", "--shard-size", "64KiB")
    shape = model_of_words(f, "few.data", WORDS[layout]) if layout in WORDS else model(f.chance)
    trained = lambda steps: flat_train(f, shape, steps)
    often_enough(f, trained, 450, ["flat"])
    text = f.run(f.at("data"), 80, program=LOADER)
    (kb, fds, threads), (kb2, fds2, threads2) = (tuple(map(int, line.split())) for line in text.splitlines())
    check(kb2 <= kb + 1024 and fds2 == fds and threads2 == threads, "40 more loaders: %s", text.split("\n"))


# ---- rounds ----------------------------------------------------------------------------------------------------------

def one_round(f):
    chance = f.chance
    layout, images, size = chance.choice(LAYOUTS), chance.randint(40, 300), chance.choice([32, 64, 96])
    trained = chance.choice(["labels"] * (layout in LABELLED) + ["words"] * (layout in WORDS) or [None])

    def part(does, *words):
        """Has chance of its own: how often a part draws may hang on when a kill came."""
        f.chance = random.Random(chance.random())
        return does(f, *words)

    part(ingest, layout, images, size)
    part(verify)
    part(replay)
    if trained:
        part(train, model(chance) if trained == "labels" else part(model_of_words, "data", WORDS[layout]))
        part(judge)
    part(flat)
    known = set("tmp source source.tar source.tgz source.zip commands.log out data again exported tok.json whole "
                "whole.jsonl killed killed.jsonl many many.data few few.data flat flat.jsonl".split())
    left = sorted(set(os.listdir(f.path)) - known)
    check(not left, "left in the folder: %s", left)
    return layout.split()[0], "trained by " + trained if trained else "not trained"


def described(what):
    return str(what) if isinstance(what, Broken) else "".join(traceback.format_exception(what)).rstrip()


def main():
    seconds = float(sys.argv[1]) * 60
    seed, _, number = (sys.argv[2] if len(sys.argv) > 2 else str(int(time.time()))).partition(":")
    seed, first = int(seed), int(number or 0)
    for program in (MILLRACE, LOADER):
        if not os.access(program, os.X_OK):
            print("soak: there is no %s; scripts/soak builds it" % program, file=sys.stderr)
            return 2
    print("soak: seed %d" % seed, flush=True)
    folder = tempfile.mkdtemp(prefix="millrace-soak-")
    met, kills, started, number = collections.Counter(), 0, time.monotonic(), first
    f = None
    try:
        while time.monotonic() - started < seconds:
            f = Folder(os.path.join(folder, str(number)), random.Random("%d/%d" % (seed, number)))
            met.update(one_round(f))
            shutil.rmtree(f.path)
            kills += f.kills
            number += 1
        os.rmdir(folder)
    except BaseException as what:           # also what no one thought of, and Ctrl-C: the seed and the folder tell why
        if f:
            f.stop()
        print("soak: seed %d, round %d: %s\nsoak: kept %s; again: scripts/soak 1 %d:%d" %
              (seed, number, described(what), os.path.join(folder, str(number)), seed, number), file=sys.stderr)
        return 1
    print("soak: seed %d, %d rounds in %d s, %d commands killed, every promise kept (%s)" %
          (seed, number - first, time.monotonic() - started, kills,
           ", ".join("%s %d" % item for item in sorted(met.items()))))
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
