#!/usr/bin/env python3
"""peers_test.py - what `millrace export` writes, read by the libraries that people read it with.

    peers_test.py MILLRACE      exit status 77 (skipped) where python has none of the libraries

scripts/export-venv makes a Python that has them; MILLRACE_PYTHON names another.  A library that is missing is named.
"""
import contextlib
import glob
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[3]
MADE = ROOT / "build/export-venv/bin/python"
LIBRARIES = ("pycocotools", "supervision", "ultralytics", "webdataset", "datasets", "torchvision")
CLASSES = ("person", "circle", "square", "triangle", "star", "ring", "cross", "hexagon", "moon", "heart", "arrow")


def has(name):
    return importlib.util.find_spec(name) is not None


if not any(map(has, LIBRARIES)):
    for python in (os.environ.get("MILLRACE_PYTHON"), str(MADE)):
        # The environment of this Python, not its file, which may be a link to the one that runs.
        if python and os.path.exists(python) and os.environ.get("MILLRACE_PEERS") != python:
            os.environ["MILLRACE_PEERS"] = python
            os.execv(python, [python, *sys.argv])
    print("skipped: python has none of %s; scripts/export-venv makes one that has" % ", ".join(LIBRARIES))
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
    labels = quietly(lambda: datasets.load_dataset(export_labels("parquet"), cache_dir=os.path.abspath("cache-labels")))
    assert labels["train"].features["label"].names == sorted(os.listdir("labels-imagenette/train"))


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


# ---- all of them ----------------------------------------------------------------------------------------------------


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["YOLO_CONFIG_DIR"] = folder
        run("sample", "coco", "--layout", "coco", "--images", 60)
        run("ingest", "coco", "coco-set")
        for name in LIBRARIES:
            if not has(name):
                print("skipped: python has no", name)
                continue
            globals()["test_" + name]()
            print("ok", name)
        os.chdir("/")


if __name__ == "__main__":
    main()
