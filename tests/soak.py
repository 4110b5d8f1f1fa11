#!/usr/bin/env python3
"""Ingest, verify, replay, train, kill and resume by chance, and look each time whether the promises were kept.

    tests/soak.py MINUTES [SEED[:ROUND]]        (scripts/soak builds first; MILLRACE_BIN, MILLRACE_SOAK_LOADER)

A round draws a dataset and its parameters from (seed, round) and checks, with SIGKILL at a moment by chance where it says so:
    ingest   folder or archive, any jobs, 1 to 3 ranks, killed and run again: equal files, nothing else beside them
    verify   clean in every mode; a lost index comes back bit for bit; export gives the source's images again
    replay   equal digests for any ranks and threads
    train    killed and resumed: weights, optimizer and log are those of the run that was left alone, to the bit
    predict  equal text from both runs, for any number of ranks
    flat     resident memory, descriptors and threads of a trainer and of a program that opens many loaders
After each: no temporary file, no process, nothing in /dev/shm.  Exit code 1 and a kept folder on the first broken one.
"""
import collections
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

MILLRACE = os.environ.get("MILLRACE_BIN", "build/release/millrace")
LOADER = os.environ.get("MILLRACE_SOAK_LOADER", "")
LIMIT = 240                     # seconds: a command that takes longer hangs
LAYOUTS = ["imagenette", "imagenette --simple", "roboflow --variant folder", "roboflow --variant multi-class",
           "roboflow --variant coco", "roboflow --variant clip", "coco", "newyorker"]
LABELLED = {"imagenette", "imagenette --simple", "roboflow --variant folder", "roboflow --variant clip", "newyorker"}


class Broken(Exception):
    pass


def check(condition, words, *values):
    if not condition:
        raise Broken(words % values)


# ---- processes ----------------------------------------------------------------------------------------------------------

def children(pid):
    """All descendants of a process, itself first."""
    of = collections.defaultdict(list)
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name) as file:
                    of[int(file.read().rsplit(")", 1)[1].split()[1])].append(int(name))
            except (OSError, IndexError):
                pass
    found = [pid]
    for one in found:
        found += of[one]
    return found


def is_millrace(pid):
    try:
        return os.path.realpath("/proc/%d/exe" % pid) == os.path.realpath(MILLRACE)
    except OSError:
        return False


def usage(pid):
    """(resident KiB, descriptors, threads) of a process."""
    try:
        with open("/proc/%d/status" % pid) as file:
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["VmRSS"].split()[0]), len(os.listdir("/proc/%d/fd" % pid)), int(fields["Threads"])
    except (OSError, KeyError):
        return None


class Folder:
    """A round's folder, and commands run in it; all that they say goes to commands.log."""

    def __init__(self, path, chance):
        self.path, self.chance, self.kills = path, chance, 0
        os.makedirs(self.at("tmp"))
        self.env = dict(os.environ, TMPDIR=self.at("tmp"), OMPI_MCA_btl_vader_backing_directory=self.at("tmp"))

    def at(self, *names):
        return os.path.join(self.path, *names)

    def start(self, ranks, words):
        command = [os.path.abspath(MILLRACE)] + [str(w) for w in words]
        if ranks > 1:
            command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)] + command
        with open(self.at("commands.log"), "a") as log:
            log.write("$ %s\n" % " ".join(command))
        self.started = time.monotonic()
        self.out, self.err = open(self.at("out"), "wb+"), open(self.at("commands.log"), "ab")
        return subprocess.Popen(command, cwd=self.path, env=self.env, stdin=subprocess.DEVNULL, stdout=self.out,
                                stderr=self.err, start_new_session=True)

    def end(self, process, pids=()):
        """Waits; what the command said, and its status."""
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            for pid in children(process.pid):
                os.kill(pid, signal.SIGABRT)
            raise Broken("%s: still running after %d seconds" % (" ".join(process.args), LIMIT)) from None
        finally:
            self.err.close()
        until = time.monotonic() + 30
        while any(is_millrace(pid) for pid in pids):
            check(time.monotonic() < until, "%s: processes are left: %s", process.args, list(pids))
            time.sleep(0.01)
        self.out.seek(0)
        text = self.out.read().decode()
        self.out.close()
        return process.returncode, text

    def part(self, process):
        """OpenMPI 4.1's mpirun may lock itself up when a rank dies while it joins: without a rank for 5 s it is ended."""
        alone = time.monotonic()
        while process.poll() is None and time.monotonic() < alone + 5:
            if any(is_millrace(pid) for pid in children(process.pid)):
                alone = time.monotonic()
                check(alone < self.started + LIMIT, "ranks outlive one that was killed: %s", process.args)
            time.sleep(0.02)
        if process.poll() is None:
            process.kill()

    def run(self, *words, ranks=1, status=0):
        process = self.start(ranks, words)
        code, text = self.end(process)
        check(code == status, "%s: exit code %d, not %d; see commands.log", " ".join(process.args), code, status)
        for name in os.listdir(self.at("tmp")):
            check("millrace" not in name, "%s left %s in TMPDIR", " ".join(process.args), name)
        return text

    def run_killed(self, *words, ranks=1, seconds=1.0):
        """Kills the command within `seconds`: one rank, or all there is; True if that was before its end."""
        process = self.start(ranks, words)
        time.sleep(self.chance.random() * seconds)
        os.kill(process.pid, signal.SIGSTOP)            # no rank is started while they are counted
        pids = children(process.pid)
        chosen = [pid for pid in pids if is_millrace(pid)]
        if chosen and ranks > 1 and self.chance.random() < 0.5:
            chosen = [self.chance.choice(chosen)]
        else:
            chosen = pids
        for pid in chosen:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        os.kill(process.pid, signal.SIGCONT)
        self.part(process)
        code, _ = self.end(process, pids)
        self.kills += code != 0
        return code != 0


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


# ---- the parts of a round -----------------------------------------------------------------------------------------------

def pack(folder, source, kind):
    """The source tree as an archive, its members in an order of chance; where it holds archives already, as it is."""
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
    for _ in range(chance.randint(1, 3)):
        f.run_killed(*again, ranks=chance.choice([1, 2, 3]), seconds=took)
        if os.path.exists(f.at("again")):
            break
    if os.path.exists(f.at("again")):
        f.run("verify", "again", "--quiet")
    else:
        f.run(*again, ranks=chance.choice([1, 1, 2, 3]))
    same(files(f.at("data")), files(f.at("again")), "ingest of %s, killed and run again" % source)


def verify(f):
    chance = f.chance
    digest = json.loads(f.run("inspect", "data", "--json"))["digest"]
    f.run("verify", "data", "--expect", digest, *chance.sample(["--deep", "--decode", "--no-sha256"], chance.randint(0, 2)),
          "--quiet", ranks=chance.choice([1, 2, 3]))
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
        check(digest in source, "export: %s is no file of the source", name)


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


def run_files(path):
    """What a run leaves, without the times in it: checkpoints, and the log without seconds."""
    found = {n: h for n, h in files(path).items() if n.endswith(".npz")}
    for parent, folders, names in os.walk(path):
        for name in folders + names:
            check(".tmp" not in name, "%s is left in %s", name, parent)
    return found


def losses(path):
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    return {(line["step"], key): line[key] for line in lines for key in ("loss", "grad_norm", "lr", "eval_loss", "eval_accuracy")
            if key in line}


def train(f):
    chance = f.chance
    world, steps = chance.choice([1, 1, 2, 3]), chance.randint(6, 24)
    options = ["--model", "vit", "--image-size", 32, "--patch", chance.choice([8, 16]), "--hidden", 32, "--layers",
               chance.randint(1, 2), "--heads", 2, "--mlp", 64, "--batch", chance.randint(2, 6), "--grad-accum",
               chance.randint(1, 2), "--steps", steps, "--optimizer", chance.choice(["sgd", "adamw"]), "--dropout",
               chance.choice([0, 0.1]), "--eval-every", chance.randint(1, 5), "--keep", chance.choice([0, 1, 2]),
               "--decay", chance.choice(["cosine", "linear", "none"]), "--quiet", "--seed", chance.randrange(1000)]
    if chance.random() < 0.5:
        options.append("--flip")
    how = lambda: ["--threads", chance.randint(1, 3), "--exchange", chance.choice(["flat", "buckets"])]
    started = time.monotonic()
    f.run("train", "data", *options, *how(), "--output", "whole", "--log", "whole.jsonl", ranks=world)
    took = time.monotonic() - started
    killed = ["train", "data", *options, "--output", "killed", "--log", "killed.jsonl"]
    f.run_killed(*killed, *how(), ranks=world, seconds=took)
    for _ in range(chance.randint(0, 2)):
        f.run_killed(*killed, *how(), "--resume", ranks=world, seconds=took)
    f.run(*killed, *how(), "--resume", ranks=world)
    same(run_files(f.at("whole")), run_files(f.at("killed")), "train, killed and resumed")
    same(losses(f.at("whole.jsonl")), losses(f.at("killed.jsonl")), "the log of train, killed and resumed")
    batch = ["--batch", chance.randint(1, 20)]
    texts = [f.run("predict", "data", run, *batch, "--threads", chance.randint(1, 3)) for run in ("whole", "killed")]
    check(texts[0].count("\n") > 1, "predict printed nothing")
    check(texts[0] == texts[1], "predict differs between the runs")
    results = [json.loads(f.run("eval", "data", "whole", "--json", "--batch", chance.randint(1, 20), ranks=r))
               for r in (1, chance.choice([2, 3]))]
    check(results[0]["accuracy"] == results[1]["accuracy"] and abs(results[0]["loss"] - results[1]["loss"]) < 1e-5,
          "eval differs by ranks: %s", results)


def flat(f):
    """A trainer of many updates, evaluations and checkpoints: what it takes at its middle is what it takes at its end."""
    process, seen = f.start(1, ["train", "data", "--model", "vit", "--image-size", 32, "--patch", 16, "--hidden", 32,
                                "--layers", 1, "--heads", 2, "--mlp", 32, "--batch", 4, "--steps", 600, "--eval-every", 10,
                                "--threads", 2, "--quiet", "--output", "flat"]), []
    while process.poll() is None and len(seen) < 100 * LIMIT:
        seen.append(usage(process.pid))
        time.sleep(0.01)
    code, _ = f.end(process)
    check(code == 0, "train of 600 updates: exit code %d", code)
    seen = [s for s in seen if s]
    middle, end = seen[len(seen) // 4:len(seen) // 2], seen[3 * len(seen) // 4:]
    # A checkpoint has files open for moments that a look may meet or miss; what leaks never falls again.
    for what, i, slack, least in (("KiB of memory", 0, 2048, max), ("descriptors", 1, 0, min), ("threads", 2, 0, min)):
        if middle and end:
            a, b = max(s[i] for s in middle), least(s[i] for s in end)
            check(b <= a + slack, "train: %d %s at half of the run, %d at its end", a, what, b)
    if LOADER:
        text = subprocess.run([LOADER, f.at("data"), "200"], check=True, capture_output=True, text=True, timeout=LIMIT).stdout
        (kb, fds, threads), (kb2, fds2, threads2) = (tuple(map(int, line.split())) for line in text.splitlines())
        check(kb2 <= kb + 2048 and fds2 == fds and threads2 == threads, "100 more loaders: %s", text.split("\n"))


def one_round(folder, seed, number):
    chance = random.Random("%d/%d" % (seed, number))
    f = Folder(folder, chance)
    layout, images, size = chance.choice(LAYOUTS), chance.randint(40, 300), chance.choice([32, 64, 96])
    shm = set(os.listdir("/dev/shm"))
    ingest(f, layout, images, size)
    verify(f)
    replay(f)
    if layout in LABELLED:
        train(f)
        if number % 8 == 0:
            flat(f)
    left = sorted(os.listdir(folder))
    known = set("tmp source source.tar source.tgz source.zip commands.log out data again exported whole killed whole.jsonl "
                "killed.jsonl flat".split())
    check(set(left) <= known, "left in the folder: %s", sorted(set(left) - known))
    # Other programs use /dev/shm too; ours would be named by us.
    check(not [n for n in set(os.listdir("/dev/shm")) - shm if "millrace" in n], "left in /dev/shm: %s", os.listdir("/dev/shm"))
    return layout, f.kills


def main():
    seconds = float(sys.argv[1]) * 60
    seed, _, number = (sys.argv[2] if len(sys.argv) > 2 else str(int(time.time()))).partition(":")
    seed, first = int(seed), int(number or 0)
    folder = tempfile.mkdtemp(prefix="millrace-soak-")
    layouts, kills, started, number = collections.Counter(), 0, time.monotonic(), first
    try:
        while time.monotonic() - started < seconds:
            layout, killed = one_round(os.path.join(folder, str(number)), seed, number)
            shutil.rmtree(os.path.join(folder, str(number)))
            layouts[layout.split()[0]] += 1
            kills += killed
            number += 1
    except Broken as broken:
        print("soak: seed %d, round %d: %s\nsoak: kept %s; again: scripts/soak 1 %d:%d" %
              (seed, number, broken, os.path.join(folder, str(number)), seed, number), file=sys.stderr)
        return 1
    os.rmdir(folder)
    print("soak: seed %d, %d rounds in %d s, %d commands killed, every promise kept (%s)" %
          (seed, number - first, time.monotonic() - started, kills,
           ", ".join("%s %d" % item for item in sorted(layouts.items()))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
