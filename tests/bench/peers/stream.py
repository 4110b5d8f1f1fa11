"""What every peer_*.py here shares: its command line, the clock, and the formats that more than one of them reads.

    peer_NAME.py write SOURCE FOLDER                          what the peer reads, made once from SOURCE's files
    peer_NAME.py decode|augment|read SOURCE FOLDER THREADS SECONDS    prints one JSON object

A peer is one module with  write(job)  and  batches(job), an endless iterator of (labels, images).
Invariant: only what lies between two moments of an endless stream is counted, wall time and the CPU time of the whole
tree of processes alike; imports, start and compilers are not.
"""
import importlib.metadata
import io
import json
import os
import sys
import tarfile
import time

BATCH = 64                              # as `millrace bench`
SIZE = 224
AHEAD = 2                               # batches that wait for the caller, where a peer has a setting for it
JITTER = (0.4, 0.4, 0.4, 0.1)           # of brightness, contrast, saturation and hue
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
WARM_SECONDS, WARM_BATCHES = 1.5, 12    # past the filling of queues and shuffle buffers
SHARD = 64 << 20                        # bytes of a shard, so that a small run has several too


class Job:
    def __init__(self, arguments):
        self.what, self.source, self.folder = arguments[:3]
        self.augment = self.what == "augment"  # decode, and change the colours
        self.decode = self.what == "decode" or self.augment
        self.threads = int(arguments[3]) if len(arguments) > 3 else 1
        self.seconds = float(arguments[4]) if len(arguments) > 4 else 0

    def files(self):
        """(path, label) of each file, sorted; the label is the place of its folder among the sorted folders."""
        train = os.path.join(self.source, "train")
        return [(os.path.join(train, name, file), label) for label, name in enumerate(sorted(os.listdir(train)))
                for file in sorted(os.listdir(os.path.join(train, name)))]

    def in_folder(self, end):
        return sorted(os.path.join(self.folder, f) for f in os.listdir(self.folder) if f.endswith(end))


def content(path):
    with open(path, "rb") as file:
        return file.read()


def write_tars(job):
    """POSIX tars as in WebDataset: KEY.jpg and KEY.cls side by side, in an order that mixes the classes."""
    files = sorted(job.files(), key=lambda f: os.path.basename(f[0]))
    tar, written, shard = None, 0, 0
    for i, (path, label) in enumerate(files):
        if tar is None or written >= SHARD:
            if tar:
                tar.close()
            tar, written, shard = tarfile.open(os.path.join(job.folder, "%05d.tar" % shard), "w"), 0, shard + 1
        for end, data in (("jpg", content(path)), ("cls", b"%d" % label)):
            entry = tarfile.TarInfo("%06d.%s" % (i, end))
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
            written += len(data)
    tar.close()


# ---- the clock ------------------------------------------------------------------------------------------------------

def tree_cpu():
    """CPU seconds, user and system, of this process, its living descendants and those that they have waited for."""
    parent, waited = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open("/proc/%s/stat" % pid).read().rpartition(")")[2].split()
        except OSError:                                                     # it ended meanwhile
            continue
        parent[int(pid)], waited[int(pid)] = int(fields[1]), int(fields[13]) + int(fields[14])
    ticks, total = os.sysconf("SC_CLK_TCK"), 0.0
    for pid in parent:
        above = pid
        while above in parent and above != os.getpid():
            above = parent[above]
        if above == os.getpid():
            try:
                # clock_getcpuclockid(3): the clock of a process is made from its number; nanoseconds, not ticks
                total += time.clock_gettime(~pid << 3 | 2) + waited[pid] / ticks
            except OSError:
                continue
    return total


def check(job, images):
    """A job is looked at before it is timed: float32 pixels of the size asked for, or a JPEG file's bytes."""
    import numpy

    first = images[0]
    if not isinstance(first, (bytes, memoryview)):
        first = numpy.asarray(first)
        first = first.item() if first.dtype == object else first
    if job.decode:
        shaped = first.dtype == numpy.float32 and sorted(first.shape) == [3, SIZE, SIZE]
        good = shaped and -3 < first.min() < first.max() < 3
    else:
        good = bytes(first)[:3] == b"\xff\xd8\xff"
    if not good:
        raise ValueError("the peer does other work than asked for")


def measure(job, batches):
    begun = time.monotonic()
    for seen, (labels, images) in enumerate(batches):
        if seen == 0:
            check(job, images)
            begun = time.monotonic()
        if seen >= WARM_BATCHES and time.monotonic() - begun >= WARM_SECONDS:
            break
    count, wall, cpu = 0, time.monotonic(), tree_cpu()
    for labels, images in batches:
        count += len(labels)
        took = time.monotonic() - wall
        if took >= job.seconds:
            break
    return {"images": count, "images_per_second": count / took, "cpu_ms_per_image": (tree_cpu() - cpu) / count * 1e3}


def main(write, batches, *packages, augments=False):
    """`augments`: it changes colours where the job asks for it."""
    job = Job(sys.argv[1:])
    if job.what == "write":
        write(job)
        return
    if job.augment and not augments:
        sys.exit("no changes of colours are written for it here")
    result = measure(job, iter(batches(job)))
    result["version"] = ", ".join("%s %s" % (p, importlib.metadata.version(p)) for p in packages)
    print(json.dumps(result), flush=True)
    os._exit(0)                         # no orderly end: it is not measured, and workers are ended by who started this
