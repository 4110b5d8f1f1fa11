#!/usr/bin/env python3
"""numpy's side of test_npz.c; exit status 77 (skipped) where python has no numpy.

    npz_numpy.py unpack FILE DIR        every array of FILE as DIR/N.bin, and DIR/index: "NAME DESCR SHAPE" a line
    npz_numpy.py pack DIR               arrays as numpy saves them: DIR/{stored,deflated,piped}.npz, N.bin and index
"""
import os
import subprocess
import sys

try:
    import numpy
except ImportError:
    print("skipped: python has no numpy")
    sys.exit(77)


def dump(arrays, folder):
    with open(os.path.join(folder, "index"), "w") as index:
        for n, (name, array) in enumerate(arrays.items()):
            shape = "x".join(str(side) for side in array.shape) or "-"
            index.write("%s %s %s\n" % (name, array.dtype.str, shape))
            with open(os.path.join(folder, "%d.bin" % n), "wb") as out:
                out.write(array.tobytes())


def pack(folder):
    rng = numpy.random.default_rng(7)
    arrays = {
        "cls": rng.standard_normal((1, 1, 64), dtype=numpy.float32),
        "Transformer/encoderblock_0/LayerNorm_0/scale": numpy.ones(64, numpy.float32),
        "embedding/kernel": rng.standard_normal((8, 8, 3, 640), dtype=numpy.float32),
        "y": rng.integers(-(1 << 60), 1 << 60, (3, 4)),
        "pixels": rng.integers(0, 256, (5, 7, 3), dtype=numpy.uint8),
        "scalar": numpy.float32(0.5),
        "empty": numpy.zeros((3, 0, 2), numpy.float32),
        "deep": numpy.zeros((1, 2, 1, 2, 1, 2, 1, 2), numpy.float32),
    }
    arrays = {name: numpy.asarray(array) for name, array in arrays.items()}
    dump(arrays, folder)
    numpy.savez(os.path.join(folder, "stored.npz"), **arrays)
    numpy.savez_compressed(os.path.join(folder, "deflated.npz"), **arrays)
    # Into a pipe, where zipfile cannot go back and writes sizes and CRCs after the data.
    with open(os.path.join(folder, "piped.npz"), "wb") as out:
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=out) as cat:
            numpy.savez(cat.stdin, **arrays)
            cat.stdin.close()


if sys.argv[1] == "pack":
    pack(sys.argv[2])
else:
    with numpy.load(sys.argv[2], allow_pickle=False) as loaded:
        dump({name: loaded[name] for name in loaded.files}, sys.argv[3])
