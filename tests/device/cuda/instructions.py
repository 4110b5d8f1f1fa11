#!/usr/bin/env python3
"""Counts the instructions of the kernels as GPUs run them, and fails if one has grown by more than 5 %.

    instructions.py FOLDER NVDISASM [--update]

FOLDER has TYPE-ARCH.cubin of tests/device/cuda/test_cuda_kernels.c (MILLRACE_CUDA_CODE).  The counts that are compared
with are in instructions.txt, which --update writes; they are of one version of NVRTC.  An instruction of a loop is counted
once, as how often it runs depends on shapes: "120/80" are 120, of them 80 between a branch backwards and where it leads.
"""
import glob
import os
import re
import subprocess
import sys

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "instructions.txt")
MOST = 1.05


def count(disassembler, path):
    """{kernel: (instructions, those in loops)}"""
    text = subprocess.run([disassembler, "-c", path], check=True, capture_output=True, text=True).stdout
    counts = {}
    for part in re.split(r"^\s*\.section\s+\.text\.", text, flags=re.M)[1:]:
        name = re.match(r"mr_(\w+)", part).group(1)
        places, labels, code = [], {}, []
        for line in part.splitlines():
            label = re.match(r"\s*(\.L_\S+):", line)
            found = re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(\S.*?)\s*;", line)
            if label:
                labels[label.group(1)] = len(code)
            elif found and not re.match(r"(@\S+\s+)?NOP", found.group(2)):
                code.append(found.group(2))
        for at, one in enumerate(code):
            target = re.search(r"BRA\S*\s+.*?`?\(?(\.L_[\w.]+)", one)
            if target and labels.get(target.group(1), at + 1) < at:
                places.append((labels[target.group(1)], at))
        looped = {i for first, last in places for i in range(first, last + 1)}
        counts[name] = (len(code), len(looped))
    return counts


def read_table():
    with open(TABLE, encoding="utf-8") as f:
        lines = [line.split() for line in f if not line.startswith("#")]
    columns = lines[0][1:]
    return {(row[0], column): int(cell.split("/")[0]) for row in lines[1:] for column, cell in zip(columns, row[1:]) if cell != "-"}


def main():
    folder, disassembler = sys.argv[1:3]
    files = sorted(glob.glob(os.path.join(folder, "*.cubin")))
    columns = [os.path.basename(f)[:-len(".cubin")] for f in files]
    counts = {column: count(disassembler, f) for column, f in zip(columns, files)}
    kernels = sorted({name for column in columns for name in counts[column]})
    rows = [["kernel", *columns]] + [[k, *("/".join(map(str, counts[c][k])) if k in counts[c] else "-" for c in columns)] for k in kernels]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    text = "".join("  ".join([row[0].ljust(widths[0])] + [cell.rjust(w) for cell, w in zip(row[1:], widths[1:])]) + "\n" for row in rows)
    print("instructions, those of loops once:\n" + text, end="")
    if "--update" in sys.argv:
        with open(TABLE, "w", encoding="utf-8") as f:
            f.write("# Instructions/of them in loops, NVRTC 13.0; written by scripts/cuda-kernels --update.\n" + text)
        return 0
    known = read_table()
    grown = [f"mr_{k} for {c}: {counts[c][k][0]} instructions instead of {known[k, c]}"
             for c in columns for k in counts[c] if (k, c) in known and counts[c][k][0] > MOST * known[k, c]]
    grown += [f"mr_{k} for {c} is not in instructions.txt" for c in columns for k in counts[c] if (k, c) not in known]
    for line in grown:
        print("cuda-kernels: " + line, file=sys.stderr)
    if grown:
        print("cuda-kernels: if that is what it takes, run scripts/cuda-kernels --update and say why", file=sys.stderr)
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
