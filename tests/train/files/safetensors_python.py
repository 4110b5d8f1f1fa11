#!/usr/bin/env python3
"""The safetensors library's side of test_safetensors.c; exit status 77 (skipped) where python does not have it.

    safetensors_python.py unpack FILE DIR   every tensor of FILE as DIR/N.bin, DIR/index: "NAME DTYPE SHAPE" a line, and
                                            DIR/again.safetensors: the same tensors as the library writes them
    safetensors_python.py pack DIR          the library's files: DIR/whole.safetensors, DIR/brain.safetensors (bfloat16),
                                            DIR/parts (two files and an index); of each the float32 values expected,
                                            DIR/KIND-N.bin, and DIR/KIND-index
"""
import json
import os
import sys

try:
    import numpy
    import safetensors
    from safetensors.numpy import load_file, save_file
except ImportError:
    print("skipped: python has no safetensors; scripts/venv hub makes one that has")
    sys.exit(77)


def dump(tensors, folder, prefix=""):
    with open(os.path.join(folder, prefix + "index"), "w") as index:
        for n, (name, tensor) in enumerate(sorted(tensors.items())):
            shape = "x".join(str(side) for side in tensor.shape) or "-"
            index.write("%s %s %s\n" % (name, tensor.dtype.str, shape))
            with open(os.path.join(folder, "%s%d.bin" % (prefix, n)), "wb") as out:
                out.write(tensor.tobytes())


def draw():
    rng = numpy.random.default_rng(11)
    halves = rng.standard_normal((33, 7)).astype(numpy.float16)
    halves.flat[:8] = [0, -0.0, numpy.inf, -numpy.inf, numpy.nan, 5.960464477539063e-08, -6.097555160522461e-05, 65504]
    return {
        "model.embed.weight": rng.standard_normal((100, 64), dtype=numpy.float32),
        "model.embed.half": halves,
        "model.norm.bias": numpy.zeros(64, numpy.float32),
        "caf\u00e9": rng.standard_normal((2, 3, 4, 5), dtype=numpy.float32),
        "logit_scale": numpy.asarray(numpy.float32(2.6592)),
        "empty": numpy.zeros((3, 0, 2), numpy.float32),
    }


def widened(tensors):
    return {name: tensor.astype(numpy.float32) for name, tensor in tensors.items()}


def pack(folder):
    tensors = draw()
    ids = {"position_ids": numpy.arange(77, dtype=numpy.int64).reshape(1, 77)}
    save_file({**tensors, **ids}, os.path.join(folder, "whole.safetensors"), metadata={"format": "pt"})
    dump(widened(tensors), folder, "whole-")

    bits = numpy.arange(0, 65536, 3, dtype=numpy.uint16)
    if hasattr(safetensors, "TensorSpec"):      # from 0.8 on; numpy alone has no bfloat16
        brain = safetensors.TensorSpec(dtype="bfloat16", shape=bits.shape, data_ptr=bits.ctypes.data,
                                       data_len=bits.nbytes)
    else:
        brain = {"dtype": "bfloat16", "shape": list(bits.shape), "data": bits.tobytes()}
    with open(os.path.join(folder, "brain.safetensors"), "wb") as out:
        out.write(safetensors.serialize({"brain": brain}, None))
    dump({"brain": (bits.astype(numpy.uint32) << 16).view(numpy.float32)}, folder, "brain-")

    parts = os.path.join(folder, "parts")
    os.mkdir(parts)
    names = sorted(tensors)
    where = {name: "model-%05d-of-00002.safetensors" % (1 + n % 2) for n, name in enumerate(names)}
    for file in set(where.values()):
        save_file({name: tensors[name] for name in names if where[name] == file}, os.path.join(parts, file))
    with open(os.path.join(parts, "model.safetensors.index.json"), "w") as out:
        json.dump({"metadata": {"total_size": sum(t.nbytes for t in tensors.values())}, "weight_map": where}, out)
    dump(widened(tensors), folder, "parts-")


if sys.argv[1] == "pack":
    pack(sys.argv[2])
else:
    loaded = load_file(sys.argv[2])
    dump(loaded, sys.argv[3])
    save_file(loaded, os.path.join(sys.argv[3], "again.safetensors"), metadata={"format": "pt"})
