#!/usr/bin/env python3
"""peers_test.py - what `millrace export` writes, read by the libraries that people read it with.

    peers_test.py MILLRACE      exit status 77 (skipped) where python has none of the libraries

scripts/venv export makes a Python that has them; MILLRACE_PYTHON names another.  A library that is missing is named.
"""
import contextlib
import glob
import hashlib
import importlib.util
import io
import json
import os
import logging
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[3]
MADE = ROOT / "build/export-venv/bin/python"
LIBRARIES = ("pycocotools", "supervision", "ultralytics", "webdataset", "datasets", "torchvision", "mlcroissant")
NEEDS = {"datasets": ("PIL",)}  # to read images
CLASSES = ("person", "circle", "square", "triangle", "star", "ring", "cross", "hexagon", "moon", "heart", "arrow")


def has(name):
    return importlib.util.find_spec(name) is not None


if not any(map(has, LIBRARIES)):
    for python in (os.environ.get("MILLRACE_PYTHON"), str(MADE)):
        # The environment of this Python, not its file, which may be a link to the one that runs.
        if python and os.path.exists(python) and os.environ.get("MILLRACE_PEERS") != python:
            os.environ["MILLRACE_PEERS"] = python
            os.execv(python, [python, *sys.argv])
    print("skipped: python has none of %s; scripts/venv export makes one that has" % ", ".join(LIBRARIES))
    sys.exit(77)
os.environ["MILLRACE_PYTHON"] = sys.executable
os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", YOLO_OFFLINE="1")
warnings.filterwarnings("ignore")
MILLRACE = os.path.realpath(sys.argv[1])


def run(*words):
    done = subprocess.run([MILLRACE, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, "%s: %s" % (" ".join(map(str, words)), done.stderr)
    return done.stdout


def quietly(call):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return call()


def export(to, *options):
    out = to + "-" + "".join(options).replace("-", "")
    run("export", "coco-set", out, "--to", to, "--json", *options)
    return os.path.abspath(out)


def source():
    with open(glob.glob("coco/annotations/instances_train*.json")[0], encoding="utf-8") as f:
        return json.load(f)


# ---- one library each -----------------------------------------------------------------------------------------------


def test_pycocotools():
    """Every annotation, its area and its mask, run lengths included, against the source's own file."""
    from pycocotools.coco import COCO
    out = export("coco")
    before = quietly(lambda: COCO(glob.glob("coco/annotations/instances_train*.json")[0]))
    after = quietly(lambda: COCO(out + "/annotations/instances_train.json"))
    assert before.anns.keys() == after.anns.keys() and before.cats.keys() == after.cats.keys()
    masks = 0
    for key, one in before.anns.items():
        other = after.anns[key]
        for member in ("area", "iscrowd", "category_id", "image_id", "bbox"):
            assert one[member] == other[member], (key, member)
        assert (before.annToMask(one) == after.annToMask(other)).all(), key
        masks += isinstance(one["segmentation"], dict)
    assert masks, "the drawn dataset has no mask in run lengths"
    names = {i["file_name"] for i in after.dataset["images"]}
    assert names == set(os.listdir(out + "/train"))
    captions = quietly(lambda: COCO(out + "/annotations/captions_train.json"))
    assert len(captions.anns) == len(quietly(lambda: COCO(glob.glob("coco/annotations/captions_train*.json")[0])).anns)


def boxes_of(document):
    """File name to its sorted boxes, corners, of what is not a crowd."""
    names = {i["id"]: i["file_name"] for i in document["images"]}
    boxes = {n: [] for n in names.values()}
    for a in document["annotations"]:
        if not a["iscrowd"]:
            x, y, w, h = a["bbox"]
            boxes[names[a["image_id"]]].append((x, y, x + w, y + h))
    return {n: sorted(b) for n, b in boxes.items()}


def near(one, other, tolerance):
    one, other = sorted(map(tuple, one)), sorted(map(tuple, other))
    assert len(one) == len(other), (one, other)
    for a, b in zip(one, other):
        assert all(abs(x - y) <= tolerance for x, y in zip(a, b)), (a, b)


def test_supervision():
    """Boxes of COCO, of YOLO and of Pascal VOC, whose first pixel is 1 and whose last one counts."""
    import supervision as sv
    expected = boxes_of(source())
    coco, voc, yolo = export("coco", "--quiet"), export("voc"), export("yolo", "--task", "detect")

    def check(dataset, tolerance):
        seen = 0
        for path, _, found in dataset:
            name = os.path.basename(path)
            if name not in expected or not expected[name]:
                continue
            boxes = found.xyxy.tolist()
            if len(boxes) == len(expected[name]):  # without crowds
                near(boxes, expected[name], tolerance)
                seen += 1
        assert seen > len(expected) // 2

    check(quietly(lambda: sv.DetectionDataset.from_coco(coco + "/train", coco + "/annotations/instances_train.json")), .01)
    check(quietly(lambda: sv.DetectionDataset.from_yolo(yolo + "/train/images", yolo + "/train/labels", yolo + "/data.yaml")), .01)
    check(quietly(lambda: sv.DetectionDataset.from_pascal_voc(voc + "/JPEGImages", voc + "/Annotations")), .01)


def test_ultralytics():
    """No label is corrupt, in any task; classes and numbers of objects."""
    from ultralytics.data.dataset import YOLODataset
    from ultralytics.data.utils import check_det_dataset
    expected = sum(map(len, boxes_of(source()).values()))
    for task in ("detect", "segment", "obb", "pose"):
        data = quietly(lambda: check_det_dataset(export("yolo", "--task", task, "--force") + "/data.yaml"))
        found = quietly(lambda: YOLODataset(img_path=data["train"], data=data, task=task, augment=False, imgsz=64))
        assert tuple(data["names"][i] for i in range(len(CLASSES))) == CLASSES
        assert sum(len(l["cls"]) for l in found.labels) == expected, task
        assert len(found.labels) == len(source()["images"]), task
        if task == "pose":
            assert found.labels[0]["keypoints"].shape[1:] == (17, 3)


def test_webdataset():
    """Every sample of numbered tars, its picture byte for byte."""
    import webdataset
    out = export("webdataset", "--shard-size", "500k")
    tars = sorted(glob.glob(out + "/train-*.tar"))
    assert len(tars) > 1
    pictures = {open(p, "rb").read() for p in glob.glob("coco/train*/*")}
    found = [s["jpg"] for s in webdataset.WebDataset(tars, shardshuffle=False)]
    assert len(found) == len(pictures) and set(found) == pictures


def test_datasets():
    """Features, splits, pictures byte for byte and objects, from Parquet and from an ImageFolder."""
    import datasets
    datasets.disable_progress_bars()
    expected = boxes_of(source())
    for to in ("parquet", "imagefolder"):
        out = export(to)
        found = quietly(lambda: datasets.load_dataset(out, cache_dir=os.path.abspath("cache-" + to)))
        assert set(found) in ({"train", "val"}, {"train", "validation"}), set(found)
        train = found["train"].cast_column("image", datasets.Image(decode=False))
        assert len(train) == len(expected)
        for row in train:
            name = os.path.basename(row["image"]["path"])
            data = row["image"]["bytes"] or open(row["image"]["path"], "rb").read()
            assert data == open(glob.glob("coco/train*/" + name)[0], "rb").read()
            boxes = [(x, y, x + w, y + h) for (x, y, w, h), crowd in zip(row["objects"]["bbox"], row["objects"]["crowd"])
                     if not crowd]
            near(boxes, expected[name], 0.01)
        assert any(row["captions"] for row in train)
    card_of(datasets, os.path.abspath("parquet-"))
    labels = quietly(lambda: datasets.load_dataset(export_labels("parquet"), cache_dir=os.path.abspath("cache-labels")))
    assert labels["train"].features["label"].names == sorted(os.listdir("labels-imagenette/train"))
    run("export", hostile_set(), "hostile-parquet", "--to", "parquet")
    hostile = quietly(lambda: datasets.load_dataset(os.path.abspath("hostile-parquet"), cache_dir=os.path.abspath("cache-h")))
    assert set(hostile) == {"all_", "a_b._c"}, set(hostile)
    assert sorted(hostile["all_"].features["label"].names) == sorted(HOSTILE)
    run("export", hostile_set(), "hostile-tars", "--to", "tar", "--shard-size", "100k")
    tars = quietly(lambda: datasets.load_dataset(os.path.abspath("hostile-tars"), cache_dir=os.path.abspath("cache-t")))
    assert {split: len(rows) for split, rows in tars.items()} == {"all_": len(HOSTILE), "a_b._c": len(HOSTILE)}, tars


def card_of(datasets, out):
    """README.md says what the library finds without it: features, counts, and bytes within a percent."""
    card = datasets.load_dataset_builder(out, cache_dir=os.path.abspath("cache-card")).info
    bare = os.path.abspath("bare")
    os.mkdir(bare)
    os.symlink(out + "/data", bare + "/data")
    found = quietly(lambda: datasets.load_dataset(bare, cache_dir=os.path.abspath("cache-bare")))
    assert card.features == found["train"].features, (card.features, found["train"].features)
    for split, rows in found.items():
        said, is_so = card.splits[split], rows.info.splits[split]
        assert said.num_examples == len(rows)
        assert abs(said.num_bytes - is_so.num_bytes) <= is_so.num_bytes / 100, (said, is_so)
    assert card.download_size == sum(os.path.getsize(p) for p in glob.glob(out + "/data/*"))


HOSTILE = ('a": "b\\', "---", "- *x &y !z {{ }} %d # | `` --> <b>", "\u2028line\u0085next\ufeff\U0001f41d", "it's", "n: [")


def hostile_set():
    """A dataset whose classes are named by somebody who means harm, and whose splits are not words."""
    if os.path.exists("hostile-set"):
        return "hostile-set"
    pictures = sorted(glob.glob("coco/train*/*"))
    for i, name in enumerate(HOSTILE):
        for split in ("train", "val"):
            os.makedirs("hostile/%s/%s" % (split, name), exist_ok=True)
            os.link(pictures[2 * i + (split == "val")], "hostile/%s/%s/%d.jpg" % (split, name, i))
    run("ingest", "hostile", "hostile-set", "--split-map", "train=all,val=a-b..c")
    return "hostile-set"


def export_labels(to):
    if not os.path.exists("labels-set"):
        run("sample", "labels", "--layout", "imagenette", "--simple", "--size", 32, "--images", 100)
        run("ingest", "labels", "labels-set")
    for format in {to, "imagenette"}:
        run("export", "labels-set", "labels-" + format, "--to", format, "--force")
    return os.path.abspath("labels-" + to)


def test_torchvision():
    import torchvision
    out = export_labels("imagenette")
    found = torchvision.datasets.ImageFolder(out + "/train")
    assert len(found) == sum(len(f) for _, _, f in os.walk(out + "/train")) and len(found.classes) == 10


def check_croissant(out, dataset):
    """mlcroissant accepts the description and reads every record as in the dataset."""
    import mlcroissant
    # It keeps what it has unpacked by the tar's relative path, and would take another dataset's for this one's.
    shutil.rmtree(os.environ["CROISSANT_CACHE"], ignore_errors=True)
    described = mlcroissant.Dataset(out + "/croissant.json")
    assert not described.metadata.ctx.issues.errors
    with open(out + "/croissant.json", encoding="utf-8") as f:
        document = json.load(f)
    for one in document["distribution"]:
        if "sha256" in one:
            with open(os.path.join(out, one["contentUrl"]), "rb") as f:
                assert hashlib.sha256(f.read()).hexdigest() == one["sha256"], one["contentUrl"]
    facts = json.loads(run("inspect", dataset, "--json"))
    if facts["classes"]:
        names = [r["dataset/classes/name"] for r in described.records("dataset/classes")]
        assert names == facts["classes"], names
    for split, counts in facts["splits"].items():
        records = {r[split + "/file_name"]: r for r in described.records(split)}
        assert len(records) == counts["samples"], (split, len(records))
        yield split, counts["samples"], records


def same_record(split, record, shown, picture, meta):
    """A record against `show` of its sample."""
    field = lambda name: record.get("%s/%s" % (split, name))
    assert field("image").fp.getvalue() == picture, shown
    assert field("split").decode() == split
    if shown["label"] >= 0:
        assert field("label") == shown["label"]
    captions = [c if isinstance(c, str) else c["caption"] for c in meta.get("captions", [])]
    assert [c.decode() for c in field("captions") or []] == captions
    objects = field("objects") or []
    assert len(objects) == len(meta.get("objects", []))
    for one, other in zip(objects, meta.get("objects", [])):
        part = {name.rsplit("/", 1)[1]: value for name, value in one.items()}
        assert part["categories"] == other["label"] and part["crowd"] == other.get("crowd", False)
        near([part["bbox"]], [other["box"]], 1e-9)
        polygons = other.get("polygons", [])
        assert len(part["polygons"]) == len(polygons)
        assert all(abs(a - b) < 1e-9 for p, q in zip(part["polygons"], polygons) for a, b in zip(p, q))


def test_mlcroissant():
    """Tars and Parquet of three datasets: hashes, and all records, their pictures byte for byte; and shards."""
    logging.getLogger("absl").setLevel(logging.ERROR)  # what is recommended, but not known here: who made it, and when
    export_labels("parquet")
    for dataset in ("coco-set", "labels-set", hostile_set()):
        shown = {}
        for to in ("tar", "parquet"):
            if to == "parquet" and not has("pyarrow"):
                print("skipped: python has no pyarrow")
                continue
            out = os.path.abspath("croissant-%s-%s" % (to, dataset))
            run("export", dataset, out, "--to", to, "--shard-size", "1MB")
            for split, samples, records in check_croissant(out, dataset):
                for n in range(samples):
                    if (split, n) not in shown:
                        run("show", dataset, split, n, "--image", "one", "--force")
                        shown[split, n] = json.loads(run("show", dataset, split, n, "--json")), open("one", "rb").read()
                    facts, picture = shown[split, n]
                    suffix = {"JPEG": "jpg", "PNG": "png", "WebP": "webp"}[facts["codec"]]
                    name = "%08d.%s" % (n, suffix) if to == "tar" else os.path.basename(facts["meta"]["source"])
                    same_record(split, records[name.encode()], facts, picture, facts["meta"])
        with open(dataset + "/croissant.json", "w", encoding="utf-8") as f:
            f.write(run("inspect", dataset, "--croissant"))
        with open(dataset + "/croissant.json", encoding="utf-8") as f:
            for one in json.load(f)["distribution"]:
                with open(os.path.join(dataset, one["contentUrl"]), "rb") as data:
                    assert hashlib.sha256(data.read()).hexdigest() == one["sha256"], one["contentUrl"]
        import mlcroissant
        assert not mlcroissant.Dataset(dataset + "/croissant.json").metadata.ctx.issues.errors


# ---- all of them ----------------------------------------------------------------------------------------------------


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["YOLO_CONFIG_DIR"] = folder
        os.environ["CROISSANT_CACHE"] = folder + "/croissant-cache"
        run("sample", "coco", "--layout", "coco", "--images", 60)
        run("ingest", "coco", "coco-set")
        for name in LIBRARIES:
            missing = [module for module in (name, *NEEDS.get(name, ())) if not has(module)]
            if missing:
                print("skipped: python has no", missing[0])
                continue
            globals()["test_" + name]()
            print("ok", name)
        os.chdir("/")


if __name__ == "__main__":
    main()
