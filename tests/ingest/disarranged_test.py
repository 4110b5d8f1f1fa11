#!/usr/bin/env python3
"""disarranged_test.py MILLRACE [SEED]: a source tree that was disarranged is refused, or read as before, or remarked on.

Drawn datasets and exports of them get a folder moved, copied or renamed, an annotation file removed or cut short, as
happens by hand and in downloads.  Where ingest then succeeds and says nothing beyond its table, `diff` with the
dataset of the tree as it was must find equal samples, but for their paths.
"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

MILLRACE = os.path.abspath(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
TRIALS = 12  # of each tree
DRAWN = ["imagenette", "coco", *("roboflow --variant " + v for v in ("folder", "multi-class", "coco", "clip"))]
EXPORTED = [("coco", "coco"), ("coco", "yolo"), ("coco", "voc"), ("coco", "imagefolder"), ("imagenette", "imagefolder")]
NAMES = ["x", "data", "images", "labels", "masks", "extra", "old"]
# How the lines of every summary begin.
USUAL = ("layout ", "  ", "seek index: ", "done in ", "digest ", "no images rejected", "1 class: ", "companions left out: ")


def millrace(*words, codes=(0,)):
    done = subprocess.run([MILLRACE, *map(str, words)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in codes, (words, done.returncode, done.stderr)
    return done


def folders(tree):
    return sorted(p for p in tree.rglob("*") if p.is_dir())


def texts(tree):
    """Annotations in which a cut shows: the last cell of a CSV or name of a YAML may be a part of one as well."""
    return sorted(p for p in tree.rglob("*") if p.suffix in (".json", ".xml", ".jsonl"))


def target(tree, folder, chance):
    """A folder that is not in the given one, and has nothing of its name."""
    places = [p for p in [tree, *folders(tree)] if p != folder and folder not in p.parents
              and not (p / folder.name).exists()]
    return chance.choice(places) / folder.name if places else None


def disarrange(tree, chance):
    """Changes the tree; what was done, or None."""
    kind = chance.choice(["move", "copy", "rename", "remove", "cut"])
    choices = folders(tree) if kind in ("move", "copy", "rename") else texts(tree)
    if not choices:
        return None
    path = chance.choice(choices)
    words = [kind, str(path.relative_to(tree))]
    if kind in ("move", "copy"):
        to = target(tree, path, chance)
        if not to:
            return None
        words.append(str(to.relative_to(tree)))
        (shutil.move if kind == "move" else shutil.copytree)(path, to)
    elif kind == "rename":
        to = path.with_name(chance.choice(NAMES))
        if to.exists() or path.name not in ("train", "val", "test", "valid", "images", "labels", "annotations",
                                            "train2017", "val2017", "Annotations", "ImageSets"):
            return None  # names of classes are anybody's, and JPEGImages says that pixels count from 1
        words.append(to.name)
        path.rename(to)
    elif kind == "remove":
        path.unlink()
    else:
        text = path.read_bytes()
        words.append(str(length := chance.randrange(len(text))))
        path.write_bytes(text[:length])
    return " ".join(words)


def silent(summary):
    """Whether nothing but the usual lines was printed; those of a remark follow a line of their own."""
    return all(line.startswith(USUAL) or line.split()[1:2] == ["classes:"] for line in summary.splitlines())


def check(folder, tree, chance):
    copy, dataset = folder / "copy", folder / "again"
    for path in (copy, dataset):
        shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(folder / tree, copy)
    done = None
    while not done:
        done = disarrange(copy, chance)
    result = millrace("ingest", copy, dataset, "--max-rejects", "0", codes=(0, 1, 2))
    if result.returncode or not silent(result.stdout) or result.stderr:
        return
    counts = json.loads(millrace("diff", folder / (tree + ".mr"), dataset, "--json", codes=(0, 1)).stdout)["counts"]
    changed = {what: n for what, n in counts["changed_in"].items() if n and what != "source"}
    assert not changed and not counts["added"] and not counts["removed"], (tree, done, counts, result.stdout)


def main():
    print("seed", SEED)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-test-"))
    try:
        trees = []
        for layout in DRAWN:
            trees.append(layout.split()[-1] if layout != "roboflow --variant coco" else "roboflow-coco")
            millrace("sample", folder / trees[-1], "--layout", *layout.split(), "--images", "30", "--size", "32",
                     "--quiet")
            millrace("ingest", folder / trees[-1], folder / (trees[-1] + ".mr"), "--quiet")
        for source, form in EXPORTED:
            trees.append(source + "-as-" + form)
            millrace("export", folder / (source + ".mr"), folder / trees[-1], "--to", form, "--quiet")
            millrace("ingest", folder / trees[-1], folder / (trees[-1] + ".mr"), "--quiet")
        for tree in trees:
            for trial in range(TRIALS):
                check(folder, tree, random.Random("%d %s %d" % (SEED, tree, trial)))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
