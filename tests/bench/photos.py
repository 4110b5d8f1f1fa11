"""JPEGs of one size for the benchmarks, as an imagenette folder: photographs where there are some, else drawn ones.

Invariant: no two files are equal (each has a comment of its own), so that no dataset stores one for two.
"""
import os
import random
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MILLRACE = os.environ.get("MILLRACE_BIN", os.path.join(ROOT, "build/release/millrace"))
DATA = os.environ.get("MILLRACE_DATA", os.path.join(os.path.dirname(ROOT), "shared/data"))


def photographs(smallest, largest):
    """The contents of the photographs in DATA that have more than `smallest` bytes and fewer than `largest`."""
    found = []
    for folder in ("coco/coco2017_mini_free", "imagenette/imagenette_shaped"):
        for path, _, files in os.walk(os.path.join(DATA, folder)):
            found += [os.path.join(path, f) for f in sorted(files) if f.lower().endswith((".jpg", ".jpeg"))]
    return [open(f, "rb").read() for f in sorted(found) if smallest < os.path.getsize(f) < largest]


def drawn(folder, *options):
    """The contents of some 200 drawn JPEGs; they need far fewer bytes a pixel than photographs do."""
    subprocess.run([MILLRACE, "sample", folder, "--layout", "imagenette", "--images", "200", "--quiet", *options],
                   check=True)
    files = [open(os.path.join(p, f), "rb").read() for p, _, fs in os.walk(folder)
             for f in sorted(fs) if f.endswith("JPEG")]
    return [f for f in files if f.startswith(b"\xff\xd8")]                 # some are PNG by content, as in ImageNet


def make_source(folder, pictures, count, size=0):
    """Writes `count` files under `folder`, the pictures again and again, each at least `size` bytes."""
    rng = random.Random(1)
    for i in range(count):
        jpeg = pictures[i % len(pictures)]
        comment = b"\xff\xfe\x00\x12" + b"%016d" % i
        tail = rng.randbytes(max(0, size - len(jpeg) - len(comment)))      # what cameras append after the end marker
        path = os.path.join(folder, "train", "class%02d" % (i % 10))
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, "image%06d.jpg" % i), "wb") as out:
            out.write(jpeg[:2] + comment + jpeg[2:] + tail)


def make_dataset(work, count):
    """A dataset of `count` JPEGs of about 110 KB below `work`: its path, and what they are."""
    pictures = photographs(85_000, 140_000)
    source, dataset = os.path.join(work, "source"), os.path.join(work, "dataset")
    make_source(source, pictures or drawn(os.path.join(work, "drawn"), "--size", "480:620"), count)
    subprocess.run([MILLRACE, "ingest", source, dataset, "--quiet"], check=True)
    return dataset, "photographs" if pictures else "drawn pictures"
