#!/usr/bin/env python3
"""Fails if more groups of source files than MOST need one another: calls, or data, that lead from a file back to itself.

    circles.py BUILD

BUILD has the objects of a build of the source in the current folder.  A table of cards and the helpers of those cards belong in two files.
"""
import os
import re
import subprocess
import sys

MOST = 3


def symbols(build):
    """{file: (names it defines, names it needs)}"""
    objects = {}
    for folder, _, names in os.walk(build):
        for name in names:
            path = os.path.join(folder, name)
            found = re.match(r"(.*/)?CMakeFiles/[^/]+\.dir/(.*)\.c\.o$", os.path.relpath(path, build))
            file = os.path.normpath((found.group(1) or "") + found.group(2)) if found else ""
            if os.path.exists(file + ".c") and not file.startswith("tests/"):  # neither generated nor gone
                objects[path] = file
    files = {file: (set(), set()) for file in objects.values()}
    lines = subprocess.run(["nm", "-A", "-P", *objects], check=True, capture_output=True, text=True).stdout.splitlines()
    for line in lines:
        path, symbol = line.rsplit(": ", 1)
        name, kind = symbol.split()[:2]
        if kind in "TDRBVWU":
            files[objects[path]][kind == "U"].add(name)
    return files


def circles(edges):
    """The strongly connected components of more than one file: R. Tarjan, 1972."""
    number, low, stack, found = {}, {}, [], []

    def visit(v):
        number[v] = low[v] = len(number)
        stack.append(v)
        for w in edges[v]:
            if w not in number:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == number[v]:
            at = stack.index(v)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for v in sorted(edges):
        if v not in number:
            visit(v)
    return found


def main():
    sys.setrecursionlimit(10000)
    files = symbols(sys.argv[1])
    home = {name: f for f, (defined, _) in files.items() for name in defined}
    edges = {f: sorted({home[n] for n in needed if n in home} - {f}) for f, (_, needed) in files.items()}
    found = circles(edges)
    if len(edges) < 100 or len(found) > MOST:
        print(f"circles: {len(found)} groups of files need one another, of {len(edges)} files; at most {MOST} may:", file=sys.stderr)
        for group in found:
            print("    " + " ".join(group), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
