#!/usr/bin/env python3
"""coco_test.py MILLRACE: `objects` against pycocotools' reading of the same files: a drawn dataset, the same under string
ids and another name, and the real ones of MILLRACE_DATA where they are there.  Without pycocotools it is skipped.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    from pycocotools.coco import COCO
except ImportError:
    python = os.environ.get("MILLRACE_PYTHON", "")
    if os.path.exists(python) and os.path.abspath(python) != sys.executable:
        os.execv(python, [python, *sys.argv])
    print("skipped: this Python has no pycocotools; MILLRACE_PYTHON names one that has")
    sys.exit(77)

MILLRACE = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parents[4]
HALF_A_STEP = 0.00051  # objects are in thousandths of a pixel


def millrace(*words):
    done = subprocess.run([MILLRACE, *map(str, words)], capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"millrace {words}: {done.stderr}")
    return done.stdout


def near(a, b):
    return len(a) == len(b) and all(abs(x - y) < HALF_A_STEP for x, y in zip(a, b))


def compare(name, found, wanted, what):
    """One annotation of pycocotools and the object of its id."""
    assert found.get("class") == name, (what, found, name)
    assert near(found["box"], wanted["bbox"]), (what, found["box"], wanted["bbox"])
    assert found.get("crowd", False) == bool(wanted.get("iscrowd", 0)), what
    outline = wanted.get("segmentation")
    rings = [r for r in outline if len(r) >= 6] if isinstance(outline, list) else []
    assert len(found.get("polygons", [])) == len(rings), what
    assert all(near(x, y) for x, y in zip(found.get("polygons", []), rings)), what
    points = wanted.get("keypoints", [])
    assert near([n for point in found.get("keypoints", []) for n in point], points), what


def metas(dataset):
    manifest = json.load(open(dataset / "manifest.json", encoding="utf-8"))
    for split, facts in manifest["splits"].items():
        for number in range(facts["samples"]):
            yield json.loads(millrace("show", "--json", dataset, split, number))["meta"]


def check(source, jsons, *options):
    """Every annotation of the files is an object, and every object is one of them; returns their number."""
    with tempfile.TemporaryDirectory() as scratch:
        dataset = pathlib.Path(scratch) / "dataset"
        millrace("ingest", "--quiet", source, dataset, *options)
        loaded = [COCO(str(j)) for j in jsons]
        seen = 0
        for meta in metas(dataset):
            wanted = {}  # by id; keypoints repeat what instances has
            for coco in loaded:
                mine = [i for i in coco.imgs.values() if i == meta["image"]]
                for image in mine:
                    for a in coco.loadAnns(coco.getAnnIds(imgIds=[image["id"]])):
                        wanted.setdefault(a["id"], {}).update({"name": coco.cats[a["category_id"]]["name"], **a})
            objects = {o["id"]: o for o in meta["objects"]}
            assert objects.keys() == wanted.keys(), (meta["source"], objects.keys() ^ wanted.keys())
            for number, a in wanted.items():
                compare(a["name"], objects[number], a, (meta["source"], number))
            seen += len(wanted)
        return seen


def text_ids(path):
    """The same file with ids that are strings."""
    doc = json.load(open(path, encoding="utf-8"))
    for image in doc["images"]:
        image["id"] = f"img-{image['id']}"
    for a in doc["annotations"]:
        a.update(id=f"a/{a['id']}", image_id=f"img-{a['image_id']}", category_id=f"c {a['category_id']}")
    for c in doc["categories"]:
        c["id"] = f"c {c['id']}"
    path.write_text(json.dumps(doc), encoding="utf-8")


def drawn(scratch):
    source = scratch / "drawn"
    millrace("sample", source, "--layout", "coco", "--images", 24, "--quiet")
    folder = source / "annotations"
    if not folder.exists():
        archive = next(source.glob("**/annotations*.zip"))
        shutil.unpack_archive(archive, source)
    for path in folder.glob("captions_*.json"):
        path.unlink()
    print("drawn:", check(source, sorted(folder.glob("*.json"))), "objects")
    for path in folder.glob("person_keypoints_*.json"):
        path.unlink()
    given = []
    for path in sorted(folder.glob("instances_*.json")):
        other = scratch / path.name.replace("instances", "my")
        path.rename(other)
        text_ids(other)
        given += ["--annotations", other]
    print("string ids:", check(source, given[1::2], *given), "objects")


def real(root):
    sets = [(root / "coco/coco2017_mini_free", "annotations/[ip]*.json"), (root / "roboflow/coco_pens", "*/*.json")]
    for source, pattern in sets:
        if not source.exists():
            print(f"not tried: {source} is not there")
            continue
        print(f"{source.name}:", check(source, sorted(source.glob(pattern))), "objects")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        drawn(pathlib.Path(directory))
    real(pathlib.Path(os.environ.get("MILLRACE_DATA") or ROOT / "../shared/data"))
