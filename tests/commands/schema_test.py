#!/usr/bin/env python3
"""schema_test.py MILLRACE SOURCE - `inspect --json` is what docs/inspect.schema.json says, with every option and several
layouts, and of a run what docs/inspect-run.schema.json says.

The checker knows the keywords that the schema uses, and refuses others, so that the schema cannot say what is not checked.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$defs", "title", "description", "type", "properties", "required", "additionalProperties", "items", "$ref", "minimum", "pattern"}

SMALL = "--model vit --image-size 16 --patch 8 --hidden 16 --layers 1 --heads 2 --mlp 32 --batch 4 --epochs 1 --device cpu".split()


def check(value, schema, root, path="$"):
    """Raises AssertionError with the place at which the value is not of the schema."""
    assert not set(schema) - KNOWN, f"{path}: the checker does not know {set(schema) - KNOWN}"
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        check(value, target, root, path)
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    fits = any(isinstance(value, TYPES[k]) and isinstance(value, bool) == (k == "boolean") for k in kinds)
    assert fits or not kinds, f"{path}: {value!r} is not of {kinds}"
    if isinstance(value, int):
        assert value >= schema.get("minimum", value), f"{path}: {value} is too small"
    if isinstance(value, str):
        assert re.search(schema.get("pattern", ""), value), f"{path}: {value} does not match"
    if isinstance(value, list):
        for i, item in enumerate(value):
            check(item, schema.get("items", {}), root, f"{path}[{i}]")
    if isinstance(value, dict):
        missing = set(schema.get("required", [])) - set(value)
        assert not missing, f"{path}: {missing} missing"
        for key, item in value.items():
            more = schema.get("additionalProperties", {})
            of_key = schema.get("properties", {}).get(key, more)
            assert of_key is not False, f"{path}: {key} is not in the schema"
            check(item, of_key, root, f"{path}.{key}")


def inspect(millrace, path, *options):
    return json.loads(subprocess.run([millrace, "inspect", path, "--json", *options], check=True, capture_output=True).stdout)


def main():
    millrace, source = sys.argv[1:]
    with open(os.path.join(source, "docs/inspect.schema.json"), encoding="utf-8") as f:
        schema = json.load(f)
    with open(os.path.join(source, "docs/inspect-run.schema.json"), encoding="utf-8") as f:
        run_schema = json.load(f)
    with tempfile.TemporaryDirectory() as work:
        for layout in "imagenette", "coco", "roboflow", "newyorker":
            src, dst = os.path.join(work, layout), os.path.join(work, layout + ".mr")
            subprocess.run([millrace, "sample", src, "--layout", layout, "--images", "20", "-q"], check=True)
            subprocess.run([millrace, "ingest", src, dst, "-q"], check=True)
            for options in [], ["--classes"], ["--objects"], ["--near-duplicates"]:
                wrong = inspect(millrace, dst, *options)
                check(wrong, schema, schema)
        view = os.path.join(work, "joined.view")
        subprocess.run([millrace, "view", view, os.path.join(work, "imagenette.mr"), os.path.join(work, "roboflow.mr")], check=True, capture_output=True)
        for options in [], ["--classes"], ["--near-duplicates"]:
            found = inspect(millrace, view, *options)
            check(found, schema, schema)
        assert [one["path"] for one in found["datasets"]] == ["imagenette.mr", "roboflow.mr"]
        copies = os.path.join(work, "copies")  # the same images in both splits: pairs to list
        shutil.copytree(os.path.join(work, "imagenette"), copies)
        (train,) = glob.glob(os.path.join(copies, "**/train"), recursive=True)
        shutil.copytree(train, os.path.join(train, "../val"), dirs_exist_ok=True)
        subprocess.run([millrace, "ingest", copies, copies + ".mr", "-q"], check=True)
        found = inspect(millrace, copies + ".mr", "--near-duplicates")
        assert found["near_duplicates"]["leaks"], "no pairs"
        check(found, schema, schema)
        run = os.path.join(work, "run")
        subprocess.run([millrace, "train", os.path.join(work, "imagenette.mr"), "--output", run, "-q", *SMALL], check=True, capture_output=True)
        check(inspect(millrace, run), run_schema, run_schema)
    wrong["splits"]["train"]["shards"] = -1
    try:
        check(wrong, schema, schema)
    except AssertionError:
        print("1 passed, 0 failed")
        return 0
    print("the checker accepts what is wrong")
    return 1


if __name__ == "__main__":
    sys.exit(main())
