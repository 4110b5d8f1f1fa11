#!/usr/bin/env python3
"""Models a training step of ViT-B/16 on an H100: what each kernel moves and executes, and the time of whichever takes longer.

    step.py FOLDER LIBRARIES NVDISASM

FOLDER has bf16.cu and float32.cu, LIBRARIES is where NVRTC is.  Each kernel is compiled once more with what the step passes it
as constants, so that ways that are not taken are not counted; a loop counts as often as the shapes say.  Bytes follow from the
shapes, as if no cache kept anything from one kernel to the next.  Nothing of it was measured on a GPU: it is for comparing two
ways before there is one, and may be wrong by 40 %.
"""
import ctypes
import os
import sys
import tempfile

import instructions

BATCH, TOKENS, HIDDEN, MLP, LAYERS, HEADS, SIDE, CLASSES = 64, 197, 768, 3072, 12, 12, 64, 1000
ROWS, WEIGHTS = BATCH * TOKENS, 4 * HIDDEN * HIDDEN + 2 * HIDDEN * MLP  # of a layer
PARAMETERS = LAYERS * (WEIGHTS + 9 * HIDDEN + MLP) + HIDDEN * (HIDDEN + TOKENS + CLASSES + 5)
WARP, WIDE, EIGHT, PARTS, GROUPS = 32, 64, 8, 64, 2048  # lanes of a warp and of a group, elements of a lane; rows.c, dense.c

BANDWIDTH = 0.9 * 3.35e12  # bytes a second
PRODUCTS = 480e12  # FLOPs a second, as cuBLASLt reaches on such cards
ISSUED = 0.6 * 132 * 4 * 1.755e9  # instructions of a warp a second


def up(a, b):
    return -(-a // b)


def launches():
    """(label, kernel, constants, launches, warps of one, how often its loops run, bytes of one)"""
    tiles, rows, wide = up(TOKENS, SIDE), ROWS * HIDDEN * 2, ROWS * MLP * 2
    groups, sums = 4 * BATCH * HEADS * tiles, HIDDEN // WIDE * PARTS * WIDE // WARP
    whole, plain = "whole = 1;", "whole = 1; threshold = 0;"
    return [
        ("attention, forward", "attention_forward_plain", "", LAYERS, groups, tiles, 4 * rows),
        ("attention, d_out * out", "attention_along", "aligned = 1;", LAYERS, up(ROWS * HEADS, WARP), SIDE // EIGHT, 2 * rows),
        ("attention, d_q", "attention_back_q_plain", "", LAYERS, groups, tiles, 5 * rows),
        ("attention, d_k and d_v", "attention_back_kv_plain", "", LAYERS, groups, tiles, 6 * rows),
        ("GELU", "activate", "kind = 0;" + plain, LAYERS, up(ROWS * MLP, EIGHT * WARP), 0, 2 * wide),
        ("GELU, backward", "activate_back", "kind = 0;" + plain, LAYERS, up(ROWS * MLP, EIGHT * WARP), 0, 3 * wide),
        ("norm", "norm", "has_residual = has_total = has_y = 1;" + plain, 2 * LAYERS + 1, ROWS * 2, HIDDEN / EIGHT / WIDE, 4 * rows),
        ("norm, backward", "norm_back", "has_residual = 1;" + whole, 2 * LAYERS + 1, ROWS * 2, HIDDEN / EIGHT / WIDE, 4 * rows),
        ("gradients of gains", "sum_part", "norm = 1;" + whole, 2 * LAYERS + 1, sums, up(ROWS, PARTS * EIGHT), 2 * rows),
        ("gradients of biases", "sum_part", "norm = 0;" + whole, 9 * LAYERS, sums, up(ROWS, PARTS * EIGHT), rows),
        ("sums of parts", "sum_fold", "", 13 * LAYERS, up(HIDDEN, WARP), PARTS, PARTS * HIDDEN * 4),
        ("weights to bf16", "to_bf16", "aligned = 1;", 2 * LAYERS, up(WEIGHTS, EIGHT * WARP), 0, WEIGHTS * 6),
        ("norm of the gradients", "squares", "aligned = 1;", 1, GROUPS * 2, up(PARAMETERS, GROUPS * WIDE * EIGHT) / 3, PARAMETERS * 4),
        ("AdamW", "adamw", "aligned = 1;", 1, up(PARAMETERS, EIGHT * WARP), 0, PARAMETERS * 28),
        ("zeroing", None, "", 1, 0, 0, PARAMETERS * 4),
    ]


def compile_for(lib, text, options):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    flags = (ctypes.c_char_p * len(options))(*options)
    if lib.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"step.cu", 0, None, None) or \
       lib.nvrtcCompileProgram(program, len(options), flags) or lib.nvrtcGetCUBINSize(program, ctypes.byref(size)):
        raise RuntimeError("a kernel does not compile with the constants of a step")
    code = ctypes.create_string_buffer(size.value)
    lib.nvrtcGetCUBIN(program, code)
    lib.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw


def counts_of(folder, lib, disassembler, kernels):
    """{kernel: (instructions, those in loops)} of kernels with constants."""
    typed, whole = (open(os.path.join(folder, name), encoding="utf-8").read() for name in ("bf16.cu", "float32.cu"))
    options, counts = [b"--gpu-architecture=sm_90", b"--fmad=false", b"-DMR_REAL_BF16", b"-DMR_MMA"], {}
    for text, these in ((typed, options), (whole, options[:2])):
        mine = [k for k in kernels if (f"MR_KERNEL(mr_{k}," in typed) == (these is options)]
        for kernel in mine:
            body = text.index("{", text.rindex(f"MR_KERNEL(mr_{kernel},")) + 1
            text = text[:body] + kernels[kernel] + text[body:]
        if mine:
            with tempfile.NamedTemporaryFile(suffix=".cubin") as f:
                f.write(compile_for(lib, text, these))
                f.flush()
                found = instructions.count(disassembler, f.name)
            counts.update({k: found[k] for k in mine})
    return counts


def main():
    folder, libraries, disassembler = sys.argv[1:4]
    lib = ctypes.CDLL(next(os.path.join(libraries, n) for n in sorted(os.listdir(libraries)) if n.startswith("libnvrtc.so")))
    products = 3 * 2 * ROWS * (LAYERS * WEIGHTS + HIDDEN * HIDDEN) / PRODUCTS * 1e3
    total, moved_in_all = products, 0
    print(f"{'a step, modelled (H100)':26}{'launches':>9}{'GB':>7}{'M instructions':>16}{'ms':>7}")
    print(f"{'products':26}{18 * LAYERS + 5:9}{'':23}{products:7.2f}")
    first, others = {}, {}  # a kernel that is there with two sets of constants is compiled twice
    for _, kernel, constants, *_ in launches():
        (others if kernel in first else first)[kernel] = constants
    first.pop(None)
    counts = {(k, c[k]): v for c in (first, others) for k, v in counts_of(folder, lib, disassembler, c).items()}
    for label, kernel, constants, number, warps, loops, moved in launches():
        all_of, looped = counts.get((kernel, constants), (0, 0))
        executed = number * warps * (all_of - looped + looped * loops)
        ms = max(number * moved / BANDWIDTH, executed / ISSUED) * 1e3
        print(f"{label:26}{number:9}{number * moved / 1e9:7.2f}{executed / 1e6:16.0f}{ms:7.2f}")
        total, moved_in_all = total + ms, moved_in_all + number * moved
    print(f"{'ViT-B/16, bf16, ' + str(BATCH) + ' images':35}{moved_in_all / 1e9:7.2f}{'':16}{total:7.2f}  {BATCH / total * 1e3:,.0f} images/s")


if __name__ == "__main__":
    main()
