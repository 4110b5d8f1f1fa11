#!/usr/bin/env python3
"""Names every source file whose tests a newcomer could not find by name; exits with 1 if there is one.

FOLDER/MODULE/NAME.c is tested by test_NAME*.c or test_PREFIX*.c (PREFIX_rest = NAME) in tests/FOLDER/MODULE, by its module's
test_MODULE*.c there or one folder up, or by a test whose head says "Covers MODULE/NAME.c".  Commands (cmd_*.c) are tested in
tests/commands, python/ by pytest.
"""
import glob
import os
import re
import sys


def covered():
    """What the heads of the tests claim."""
    names = set()
    for path in glob.glob("tests/**/test_*.c", recursive=True):
        with open(path, encoding="utf-8") as f:
            head = f.read(4000).split("*/")[0]
        claim = re.search(r"Covers ([^.]*(?:\.c\b[^.]*)*)\.", head.replace("\n *", " "))
        if claim:
            names.update(re.findall(r"\w+/\w+\.c", claim.group(1)))
    return names


def has_test(folder, name):
    module = os.path.basename(folder)
    parts = name.split("_")
    names = [(folder, "_".join(parts[:n])) for n in range(len(parts), 0, -1)]
    names += [(folder, module), (os.path.dirname(folder), module)]
    return any(
        glob.glob(f"tests/{where}/test_{what}.c") or glob.glob(f"tests/{where}/test_{what}_*.c") for where, what in names
    )


def main():
    claimed, missing = covered(), []
    known = set()
    for folder in set(sys.argv[1:]) - {"python"}:
        for path in sorted(glob.glob(f"{folder}/**/*.c", recursive=True)):
            where, file = os.path.split(path)
            short = f"{os.path.basename(where)}/{file}"
            known.add(short)
            if not file.startswith("cmd_") and short not in claimed and not has_test(where, file[:-2]):
                missing.append(f"{path}: no test carries its name, its module's name, or says \"Covers {short}\"")
    missing += [f"{name}: a test covers it, but there is no such file" for name in sorted(claimed - known)]
    print("\n".join(missing), end="\n" if missing else "")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
