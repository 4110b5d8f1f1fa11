#!/usr/bin/env python3
"""The best of the other loaders beside millrace, on the same files in one run: a table of ratios.

    scripts/bench/peers [--images 8000] [--rounds 3] [--json FILE]          makes the virtual environments, then runs this

Jobs: decode (a random part of 0.08 to 1 of the area resized to 224 pixels, mirrored, normalised, float32) with one
thread and with two, augment (the same with changed colours; millrace by its Python package), and read (the encoded bytes, shuffled, from the page cache) with one. In each round every peer
stands between two runs of `millrace bench`, and a ratio is of what the peer took and the mean of these two: millrace,
peer, millrace, peer, ... Medians over the rounds. CPU time is that of all processes of a peer. The machine's limits are
what `millrace bench` measures alternating with itself. A peer that cannot run is a line that says why.
"""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

from photos import MILLRACE, drawn, make_source, photographs

PEERS_DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")
PACKAGE = os.path.join(os.path.dirname(os.path.abspath(MILLRACE)), "python")
JOBS = {"decode-1": ("decode", 1), "decode-2": ("decode", 2), "augment-1": ("augment", 1), "read-1": ("read", 1), "read-2": ("read", 2)}
STAGE = {"decode": "input", "read": "read"}

# name: (environment, module, format that it reads or None for the files themselves, what to know of its figures)
OWN = "millrace for Python"
PEERS = {
    OWN: ("torch", "peer_millrace", "millrace", "hashes every record, as the program does"),
    "tf.data": ("tf", "peer_tfdata", "tfrecord", "fast inverse DCT, resize without antialiasing; checks a CRC-32C"),
    "DALI": ("dali", "peer_dali", "tar", "reads through a map, checks nothing"),
    "FFCV": ("ffcv", "peer_ffcv", "ffcv", "fast inverse DCT; reads through a map, checks nothing, gives no lengths"),
    "torchvision": ("torch", "peer_torchvision", None, "reads the files; checks nothing"),
    "webdataset": ("torch", "peer_webdataset", "tar", "decodes by torchvision; checks nothing"),
    "litdata": ("torch", "peer_litdata", "litdata", "decodes by torchvision; checks nothing"),
    "mosaicml-streaming": ("torch", "peer_mosaic", "mds", "decodes by torchvision; checks nothing here"),
}


class NotMeasured(Exception):
    pass


class Bench:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.source, self.dataset = os.path.join(work, "source"), os.path.join(work, "dataset")
        self.why, self.versions = {}, {}
        self.version = output([MILLRACE, "--version"]).splitlines()[0]
        # Without a network, and with a /dev/shm of its own: mosaicml-streaming leaves things there when it is ended.
        alone = ["unshare", "-rnm", "sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$0" "$@"']
        self.offline = alone if subprocess.run(alone + ["true"], stderr=subprocess.DEVNULL).returncode == 0 else []

    # ---- data -------------------------------------------------------------------------------------------------------

    def make_data(self):
        o = self.options
        pictures = photographs(o.bytes * 3 / 4, o.bytes * 5 / 4)
        self.kind = "photographs" if pictures else "drawn pictures"
        make_source(self.source, pictures or drawn(os.path.join(self.work, "drawn"), "--size", "480:620"), o.images)
        subprocess.run([MILLRACE, "ingest", self.source, self.dataset, "--quiet"], check=True)
        self.mean_bytes = warm(self.source) / o.images

    def folder(self, name):
        """Where the peer's format lies; it is written when first asked for."""
        form = PEERS[name][2]
        if form is None:
            return self.source
        path = os.path.join(self.work, form)
        if not os.path.exists(path):
            os.makedirs(path)
            try:
                self.run_peer(name, "write", path)
            except NotMeasured:
                shutil.rmtree(path, ignore_errors=True)
                raise
        return path

    # ---- one run ----------------------------------------------------------------------------------------------------

    def run_peer(self, name, what, folder, *arguments):
        """Standard output of the peer; its whole process group is gone afterwards."""
        environment, module = PEERS[name][:2]
        python = os.path.join(self.options.venvs, environment, "bin/python")
        if not os.path.exists(python):
            raise NotMeasured(reason(os.path.join(self.options.venvs, environment + ".why")))
        env = dict(os.environ, TMPDIR=self.work, HOME=self.work, TF_CPP_MIN_LOG_LEVEL="3", PYTHONDONTWRITEBYTECODE="1",
                   MILLRACE_BIN=MILLRACE, MILLRACE_PACKAGE=PACKAGE)
        command = self.offline + [python, os.path.join(PEERS_DIR, module + ".py"), what, self.source, folder]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = subprocess.Popen(command + [str(a) for a in arguments], stdout=out, stderr=err, env=env,
                                     start_new_session=True)
            try:
                status = child.wait(self.options.timeout)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                end_group(child)
            if status is None:
                raise NotMeasured("no end within %d s" % self.options.timeout)
            if status != 0:
                raise NotMeasured(last_line(err) or "ended with %d" % status)
            out.seek(0)
            return out.read().decode()

    def peer(self, name, job):
        what, threads = JOBS[job]
        folder = self.folder(name)
        warm(folder)
        text = self.run_peer(name, what, folder, threads, self.options.seconds)
        result = json.loads(text.strip().splitlines()[-1])
        self.versions[name] = result["version"]
        return result

    def millrace(self, job):
        what, threads = JOBS[job]
        if what not in STAGE:
            return self.peer(OWN, job)
        warm(self.dataset)
        command = [MILLRACE, "bench", self.dataset, "--stage", STAGE[what], "--threads", str(threads), "--size", "224",
                   "--seconds", str(self.options.seconds), "--json"]
        return json.loads(output(command))

    # ---- all runs ---------------------------------------------------------------------------------------------------

    def round(self, number, job, seen):
        """millrace, peer, millrace, peer, ... ; adds what was seen to `seen`: {"millrace": [...], name: [...]}."""
        before = self.millrace(job)
        seen.setdefault("millrace", []).append(before)
        for name in self.options.peers:
            if (name, job) in self.why:
                continue
            say("round %d of %d, %s: %s" % (number, self.options.rounds, job, name))
            try:
                result = self.peer(name, job)
            except NotMeasured as why:
                self.why[name, job] = str(why)
                continue
            after = self.millrace(job)
            for key, ratio in (("cpu_ms_per_image", "cpu_ratio"), ("images_per_second", "rate_ratio")):
                result[ratio] = result[key] / ((before[key] + after[key]) / 2)
            seen["millrace"].append(after)
            seen.setdefault(name, []).append(result)
            before = after

    def run(self):
        self.make_data()
        seen = {job: {} for job in self.options.jobs}
        for i in range(self.options.rounds):
            for job in self.options.jobs:
                self.round(i + 1, job, seen[job])
        return {job: self.sum_up(job, seen[job]) for job in seen}

    def sum_up(self, job, seen):
        """Rows of the table: millrace, the machine's limits, the peers by their CPU time, and who is missing."""
        own = seen["millrace"]
        keys = ("cpu_ms_per_image", "images_per_second", "cpu_ratio", "rate_ratio")
        limits = [limit(own, "limit_", own[0].get("limit")), limit(own, "memcpy_", "memcpy")]
        peers = [{"name": n, "kind": "peer", "version": self.versions[n], "runs": len(seen[n]),
                  **{k: middle(seen[n], k) for k in keys},
                  "cpu_ratio_range": [extreme(r["cpu_ratio"] for r in seen[n]) for extreme in (min, max)]}
                 for n in self.options.peers if n in seen]
        missing = [{"name": n, "kind": "not measured", "why": self.why[n, job]}
                   for n in self.options.peers if n not in seen]
        first = {"name": "millrace", "kind": "millrace", "runs": len(own), "cpu_ratio": 1.0, "rate_ratio": 1.0,
                 **{k: middle(own, k) for k in keys[:2]}}
        return [first] + [r for r in limits if r] + sorted(peers, key=lambda r: r["cpu_ms_per_image"]) + missing


# ---- helpers --------------------------------------------------------------------------------------------------------

def output(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def middle(results, key):
    return statistics.median(r[key] for r in results)


def limit(own, prefix, name):
    """What the machine can do, as millrace measured it alternating with itself; None if this job has no such limit."""
    if prefix + "cpu_ms_per_image" not in own[0]:
        return None
    row = {"name": "(%s)" % name, "kind": "limit", "runs": len(own)}
    for key, ratio in (("cpu_ms_per_image", "cpu_ratio"), ("images_per_second", "rate_ratio")):
        row[key] = middle(own, prefix + key)
        row[ratio] = statistics.median(r[prefix + key] / r[key] for r in own)
    return row


def say(words):
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K" + words)
        sys.stderr.flush()


def warm(folder):
    """Reads all of it, so that it is in the page cache; the number of bytes."""
    total = 0
    for path, _, files in os.walk(folder):
        for file in files:
            with open(os.path.join(path, file), "rb") as data:
                while block := data.read(1 << 20):
                    total += len(block)
    return total


def end_group(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def last_line(file):
    """What a failed program said last, one line fit for a table."""
    file.seek(0)
    lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1][:160] if lines else ""


def reason(path):
    try:
        return open(path).read().strip()
    except OSError:
        return "no virtual environment; scripts/bench/peers makes it"


TITLES = {"decode": "decode: RandomResizedCrop(224), flip, normalise, float32",
          "augment": "augment: the same with brightness, contrast, saturation and hue (FFCV: all but hue) changed (0.4, 0.4, 0.4, 0.1)",
          "read": "read: encoded bytes, shuffled, warm"}


def print_table(options, bench, table):
    line = "  %-32s %10s %10s %11s %10s  %s"
    print("%d JPEGs (%s), %.1f kB each; medians of %d rounds of about %g s; batches of 64" %
          (options.images, bench.kind, bench.mean_bytes / 1e3, options.rounds, options.seconds))
    print("ratios are to millrace in the same run: CPU above 1 is dearer, rate below 1 is slower")
    for job, rows in table.items():
        what, threads = JOBS[job]
        print("\n%s, %d thread%s" % (TITLES[what], threads, "s" * (threads > 1)))
        print(line % ("", "CPU ms/img", "x millrace", "images/s", "x millrace", "CPU ratio, lowest to highest"))
        for r in rows:
            if r["kind"] == "not measured":
                print("  %-32s not measured: %s" % (r["name"], r["why"]))
                continue
            spread = "%.2f to %.2f of %d" % (*r["cpu_ratio_range"], r["runs"]) if "cpu_ratio_range" in r else ""
            rate = "{:,.0f}".format(r["images_per_second"])
            print((line % (r["name"], "%.4f" % r["cpu_ms_per_image"], "%.2f" % r["cpu_ratio"], rate,
                           "%.2f" % r["rate_ratio"], spread)).rstrip())
        peers = [r for r in rows if r["kind"] == "peer" and r["name"] != OWN]
        if peers:
            cheap, fast = min(peers, key=lambda r: r["cpu_ratio"]), max(peers, key=lambda r: r["rate_ratio"])
            print("  millrace: %.2f of the CPU of the cheapest peer (%s), %.2f times the rate of the fastest (%s)" %
                  (1 / cheap["cpu_ratio"], cheap["name"], 1 / fast["rate_ratio"], fast["name"]))
    print("\n%s; hashes every record" % bench.version)
    for name in bench.versions:
        print("%s: %s; %s" % (name, bench.versions[name], PEERS[name][3]))
    if not bench.offline:
        print("the peers were not cut off from the network: unshare(1) is not permitted here")


def choice(names):
    def parse(text):
        chosen = text.split(",")
        wrong = [c for c in chosen if c not in names]
        if wrong:
            raise argparse.ArgumentTypeError("%s: use some of %s" % (wrong[0], ",".join(names)))
        return chosen
    return parse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venvs", required=True, metavar="FOLDER", help="with what scripts/bench/peers makes there")
    parser.add_argument("--images", type=int, default=8000)
    parser.add_argument("--bytes", type=int, default=110000, help="photographs of three to five quarters of it")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement")
    parser.add_argument("--timeout", type=float, default=180, help="seconds until a peer is given up")
    parser.add_argument("--jobs", type=choice(list(JOBS)), default=["decode-1", "decode-2", "read-1"],
                        help=",".join(JOBS))
    parser.add_argument("--peers", type=choice(list(PEERS)), default=list(PEERS), help=",".join(PEERS))
    parser.add_argument("--dir", default=None, help="where the data is made; needs ten times its size")
    parser.add_argument("--json", metavar="FILE", help="write the table there too, as one JSON object")
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)     # look at the options, no more
    options = parser.parse_args()
    if options.check:
        return
    options.venvs = os.path.abspath(options.venvs)
    work = tempfile.mkdtemp(prefix="millrace-peers-", dir=options.dir)
    try:
        if shutil.disk_usage(work).free < 10 * options.images * options.bytes:
            parser.error("%s: has not ten times the %d MB of the images free; use --dir or fewer --images" %
                         (work, options.images * options.bytes // 1000000))
        bench = Bench(options, work)
        table = bench.run()
        say("")
        print_table(options, bench, table)
        if options.json:
            with open(options.json, "w") as out:
                json.dump({"images": options.images, "mean_bytes": bench.mean_bytes, "pictures": bench.kind,
                           "rounds": options.rounds, "seconds": options.seconds, "jobs": table}, out, indent=1)
                out.write("\n")
    except subprocess.CalledProcessError as failed:                         # millrace itself, which has said why
        sys.exit("peers: ended with %d: %s" % (failed.returncode, " ".join(failed.cmd)))
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
