#!/usr/bin/env python3
"""Names every path in these documents that is not in the tree; exits with 1 if there is one.

    paths_of.py ROOT DOCUMENT...

A path has a slash and begins with a folder of the top level or of tests/, or ends like a source file.  Of a file that a reader is to
write (mylayout.c) only the folder has to be there; names in capitals or with * stand for others, and FOLDER/NAME may be a test.
"""
import glob
import os
import re
import sys

ENDINGS = r"\.(?:c|h|cl|py|sh|md|txt|cmake|css|in|map)"


def paths(text, tops):
    """The paths that a document names, each once."""
    text = re.sub(r"https?://\S+", "", text)
    for word in sorted(set(re.findall(r"(?<![\w/.@*-])[\w.-]+(?:/[\w.*@-]+)+/?", text))):
        word = word.rstrip(".")
        top = word.split("/")[0]
        stands_for_others = re.search(r"\*|@|[A-Z]{3,}(?!\w*\.md)|\.\.\.", word)
        if not stands_for_others and (top in tops or re.search(ENDINGS + "$", word)):
            yield re.sub(r"[^/]*(?:\b|_)my[a-z]+.*", "", word)


def exists(root, beside, path):
    folder, name = os.path.split(path)
    return (
        os.path.exists(os.path.join(root, path))
        or os.path.exists(os.path.join(root, beside, path))
        or glob.glob(os.path.join(root, "tests", folder, f"test_{name}.*"))
    )


def main():
    root, documents = sys.argv[1], sys.argv[2:]
    folders = [root, os.path.join(root, "tests")]
    tops = {f.name for folder in folders for f in os.scandir(folder) if f.is_dir()} - {"build", "static"}
    missing, found = [], 0
    for document in documents:
        with open(os.path.join(root, document), encoding="utf-8") as f:
            for path in paths(f.read(), tops):
                found += 1
                if not exists(root, os.path.dirname(document), path):
                    missing.append(f"{document}: {path}: there is no such file")
    if not found:
        missing.append("these documents name no path")
    print("\n".join(missing), end="\n" if missing else "")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
