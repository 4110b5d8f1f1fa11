#!/usr/bin/env python3
"""hub_test.py - Parquet files like those that people have, written by pyarrow, against what millrace makes of them.

    hub_test.py MILLRACE [TEST...]      exit status 77 (skipped) where python has no pyarrow

scripts/venv hub makes a Python that has it; MILLRACE_PYTHON names another.  Chance is seeded by MILLRACE_TEST_SEED.
"""
import base64
import datetime
import decimal
import inspect
import io
import json
import math
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[4]
MADE = ROOT / "build/hub-venv/bin/python"

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    for python in (os.environ.get("MILLRACE_PYTHON"), str(MADE)):
        if python and os.path.exists(python) and not subprocess.run([python, "-c", "import pyarrow.parquet"], stderr=subprocess.DEVNULL).returncode:
            os.execv(python, [python, *sys.argv])
    print("skipped: python has no module pyarrow; scripts/venv hub makes one that has")
    sys.exit(77)
os.environ["MILLRACE_PYTHON"] = sys.executable

READER = ROOT / "ingest" / "layout" / "hub" / "parquet_rows.py"
HANG = 900                      # seconds, which nothing here takes unless it hangs
SEED = int(os.environ.get("MILLRACE_TEST_SEED", "1"))
MILLRACE = os.path.realpath(sys.argv[1])
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def png(width, salt=0):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = b"".join(b"\0" + bytes((salt + x + y) % 256 for x in range(width)) for y in range(3))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, 3, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def images(count, first=1):
    return [{"bytes": png(first + i), "path": "%d.png" % i} for i in range(count)]


def millrace(*args, expect=0, env=None):
    r = subprocess.run([MILLRACE, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       env=dict(os.environ, **(env or {})), timeout=HANG)
    assert r.returncode == expect, "millrace %s: exit code %d, not %d\n%s%s" % (
        " ".join(map(str, args)), r.returncode, expect, r.stdout, r.stderr)
    return r


def refused(work, source, words, *options, expect=1, env=None):
    r = millrace("ingest", source, work / "refused", "-q", *options, expect=expect, env=env)
    assert all(w in r.stderr for w in ([words] if isinstance(words, str) else words)), r.stderr
    assert not (work / "refused").exists() and not (work / "refused.partial").exists()


def samples(dataset, split):
    """(image bytes, meta without its source, source) of each sample, by millrace itself."""
    out = []
    manifest = json.loads((dataset / "manifest.json").read_text())
    for n in range(manifest["splits"][split]["samples"]):
        meta = json.loads(millrace("show", dataset, split, n, "--json").stdout)["meta"]
        image = subprocess.run([MILLRACE, "show", str(dataset), split, str(n), "--image", "-"], check=True,
                               stdout=subprocess.PIPE).stdout
        meta.pop("image_of", None)
        out.append((image, meta, meta.pop("source")))
    return out


def rows_of(path, *options):
    """What the reader alone says: schema, and (row, image) by number."""
    r = subprocess.run([sys.executable, str(READER), *options, str(path)], check=True, stdout=subprocess.PIPE)
    rows, pictures, schema = {}, {}, None
    with tarfile.open(fileobj=io.BytesIO(r.stdout)) as tar:
        for member in tar:
            data = tar.extractfile(member).read()
            if member.name == "schema.json":
                schema = json.loads(data)
            elif member.name.endswith(".json"):
                rows[int(member.name[:9])] = json.loads(data)
            elif "/" in member.name:
                pictures[int(member.name[:9])] = data
    assert sorted(rows) == list(range(schema["rows"]))
    return schema, rows, pictures


def write(path, table, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)
    return path


def with_features(table, features):
    return table.replace_schema_metadata({b"huggingface": json.dumps({"info": {"features": features}}).encode()})


# ---- the New Yorker set ---------------------------------------------------------------------------------------------


def test_newyorker_twin(work):
    """The same rows from the v1.0 zips and from Parquet: equal images, labels and metas."""
    folder = pathlib.Path(os.environ.get("MILLRACE_DATA", ROOT.parent / "shared/data")) / "newyorker/newyorker_shaped"
    if not folder.exists():
        folder = work / "drawn"
        millrace("sample", folder, "--layout", "newyorker", "--images", "40", "-q")
    matching, pictures = zipfile.ZipFile(folder / "matching.zip"), zipfile.ZipFile(folder / "all_contest_images.zip")
    names = {pathlib.PurePath(n).stem: n for n in pictures.namelist() if not n.endswith("/")}
    try:
        import datasets
        datasets.disable_progress_bars()
    except ImportError:
        datasets = None
    for split, hub in (("train", "train"), ("val", "validation"), ("test", "test")):
        rows = [json.loads(line) for line in matching.read("matching/%s.jsonl" % split).splitlines()]
        for row in rows:
            name = names[str(row["contest_number"])]
            row["image"] = {"bytes": pictures.read(name), "path": pathlib.PurePath(name).name}
        path = work / "hub/matching" / ("%s-00000-of-00001.parquet" % hub)
        path.parent.mkdir(parents=True, exist_ok=True)
        if datasets:
            datasets.Dataset.from_list(rows).cast_column("image", datasets.Image()).to_parquet(str(path))
        else:
            write(path, pa.Table.from_pylist(rows))
    millrace("ingest", folder, work / "zips", "-q", *(["--config", "matching"] if "drawn" in str(folder) else []))
    millrace("ingest", work / "hub", work / "parquet", "-q", "--text-column", "image_description")
    millrace("verify", work / "parquet", "--deep", "-q")
    for split in ("train", "val", "test"):
        ours, theirs = samples(work / "parquet", split), samples(work / "zips", split)
        assert len(ours) == len(theirs) > 0
        for (image, meta, source), (image2, meta2, source2) in zip(ours, theirs):
            assert meta.pop("captions") == [meta["columns"]["image_description"]]
            assert image == image2 and meta == meta2, (source, meta, meta2)
            assert pathlib.PurePath(source).name == pathlib.PurePath(source2).name
    return "with the datasets library's writer" if datasets else "with pyarrow's writer"


# ---- values ---------------------------------------------------------------------------------------------------------


def reference(value):
    """What a value is in JSON, by other means than the reader's."""
    if isinstance(value, dict):
        return {k: reference(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [reference(v) for v in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat(timespec="microseconds") + ("Z" if value.tzinfo else "")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, datetime.time):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, datetime.timedelta):
        micros = (value.days * 86400 + value.seconds) * 1000000 + value.microseconds
        return "%sPT%d.%06dS" % ("-" if micros < 0 else "", abs(micros) // 1000000, abs(micros) % 1000000)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def random_type(r, depth=0):
    leaves = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64(),
              pa.bool_(), pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(5), pa.date32(),
              pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.time64("us"), pa.duration("us"), pa.decimal128(12, 3),
              pa.null(), pa.dictionary(pa.int32(), pa.string())]
    if depth >= 3 or r.random() < 0.6:
        return r.choice(leaves)
    kind = r.choice(["list", "large", "struct", "map", "fixed"])
    if kind == "struct":
        return pa.struct([("f%d" % i, random_type(r, depth + 1)) for i in range(r.randrange(1, 4))])
    inner = random_type(r, depth + 1)
    while pa.types.is_dictionary(inner) or (kind == "fixed" and inner == pa.null()):
        inner = random_type(r, 3)
    return {"list": pa.list_, "large": pa.large_list, "fixed": lambda t: pa.list_(t, 2),
            "map": lambda t: pa.map_(pa.string(), t)}[kind](inner)


def random_value(r, t):
    types = pa.types
    if r.random() < 0.2 or types.is_null(t):
        return None
    if types.is_dictionary(t):
        return r.choice(["red", "gr\u00fcn", ""])
    if types.is_struct(t):
        return {f.name: random_value(r, f.type) for f in t}
    if types.is_map(t):
        return [("k%d" % i, random_value(r, t.item_type)) for i in range(r.randrange(3))]
    if types.is_fixed_size_list(t):
        return [random_value(r, t.value_type) for _ in range(2)]
    if types.is_list(t) or types.is_large_list(t):
        return [random_value(r, t.value_type) for _ in range(r.randrange(4))]
    if types.is_integer(t):
        low = 0 if types.is_unsigned_integer(t) else -(1 << (t.bit_width - 1))
        return r.choice([low, low + (1 << t.bit_width) - 1, 0, r.randrange(100)])
    if types.is_floating(t):
        return r.choice([0.5, -1.25, math.inf, -math.inf, 3.0])
    if types.is_boolean(t):
        return r.random() < 0.5
    if types.is_string(t) or types.is_large_string(t):
        return r.choice(["", "a \"text\"\n", "\u00fcber \U0001f600", "nul \0 in it", "x" * r.randrange(500)])
    if types.is_fixed_size_binary(t):
        return r.randbytes(5)
    if types.is_binary(t) or types.is_large_binary(t):
        return r.randbytes(r.randrange(20))
    if types.is_decimal(t):
        return decimal.Decimal(r.randrange(-10**9, 10**9)).scaleb(-3)
    if types.is_date(t):
        return datetime.date(r.randrange(1, 9999), r.randrange(1, 13), r.randrange(1, 28))
    if types.is_time(t):
        return datetime.time(r.randrange(24), r.randrange(60), r.randrange(60), r.randrange(10**6))
    if types.is_duration(t):
        return datetime.timedelta(seconds=r.randrange(-10**6, 10**6), microseconds=r.randrange(10**6))
    zone = datetime.timezone.utc if t.tz else None
    return datetime.datetime(r.randrange(1, 9999), r.randrange(1, 13), 2, 3, 4, 5, r.randrange(10**6), zone)


def test_random_schemas(work):
    """Every value of every row as JSON, nested, null, in dictionaries; in one batch or in many."""
    r = random.Random(SEED)
    for number in range(60):
        rows = r.choice([0, 1, 2, 17, 60])
        names = ["c%d" % i for i in range(r.randrange(1, 6))] + ["sp ace", "\u00fcml"][:r.randrange(3)]
        columns = {"image": (IMAGE, images(rows))}
        columns.update({n: (t, [random_value(r, t) for _ in range(rows)]) for n in names for t in [random_type(r)]})
        order = r.sample(list(columns), len(columns))
        table = pa.table([pa.array(columns[n][1], columns[n][0]) for n in order], names=order)
        path = write(work / ("r%d.parquet" % number), table, row_group_size=r.choice([1, 7, 1000]),
                     compression=r.choice(["snappy", "zstd", "none"]), use_dictionary=r.random() < 0.5,
                     data_page_version=r.choice(["1.0", "2.0"]), store_schema=True)
        schema, found, pictures = rows_of(path)
        back = pq.read_table(path)
        assert schema["rows"] == rows and schema["columns"] == [n for n in order if n != "image"]
        for i in range(rows):
            # Maps and floats as pyarrow reads them back: float32 has lost what it has lost.
            expected = {n: reference(back.column(n)[i].as_py()) for n in order if n != "image"}
            assert found[i] == expected, "seed %d, schema %d, row %d: %r, not %r\n%s" % (
                SEED, number, i, found[i], expected, table.schema)
            assert list(found[i]) == schema["columns"]
            assert pictures[i] == columns["image"][1][i]["bytes"]
    return "60 schemas, seed %d" % SEED


def test_odd_values(work):
    """Times beyond Python's, nanoseconds, strings that are not UTF-8, deep nesting."""
    odd = pa.array([b"caf\xe9", b"ok", None]).view(pa.string())
    table = pa.table({
        "image": pa.array(images(3), IMAGE),
        "ns": pa.array([1, -1, None], pa.timestamp("ns")),
        "far": pa.array([2**62, -2**62, 0], pa.timestamp("s", "Europe/Paris")),
        "ms": pa.array([86399999, 0, 1], pa.time32("ms")),
        "half": pa.array([0.5, None, 2.0], pa.float16()) if hasattr(pa, "float16") else pa.nulls(3),
        "odd": odd,
        "lists": pa.array([[[[["x"]]], []], None, [None, [[]]]]),
    })
    path = write(work / "odd.parquet", table.drop_columns(["far", "half"]))
    _, rows, _ = rows_of(path)
    assert rows[0]["ns"] == "1970-01-01T00:00:00.000000001" and rows[1]["ns"] == "1969-12-31T23:59:59.999999999"
    assert rows[0]["ms"] == "23:59:59.999" and rows[2]["ms"] == "00:00:00.001"
    assert rows[0]["odd"] == "caf\\xe9" and rows[1]["odd"] == "ok" and rows[2]["odd"] is None
    assert rows[0]["lists"] == [[[["x"]]], []] and rows[1]["lists"] is None and rows[2]["lists"] == [None, [[]]]
    sys.path.insert(0, str(READER.parent))
    import parquet_rows
    assert parquet_rows.values(table.column("far").chunk(0))[0].endswith("Z")
    for days in (0, 59, 60, 365, 10957, -1, -719162, 2932896):
        assert parquet_rows.date_text(days) == (datetime.date(1970, 1, 1) + datetime.timedelta(days)).isoformat()
    assert parquet_rows.date_text(-719163) == "0000-12-31" and parquet_rows.date_text(2932897) == "10000-01-01"
    assert parquet_rows.values(pa.array([-1500], pa.duration("ms"))) == ["-PT1.500S"]


# ---- files ----------------------------------------------------------------------------------------------------------


def test_every_codec(work):
    """All compressions and encodings that pyarrow writes give the same dataset."""
    table = pa.table({"image": pa.array(images(20), IMAGE), "n": list(range(20)), "s": ["text %d" % (i % 3) for i in range(20)]})
    digests, tried = set(), []
    for codec in ("none", "snappy", "gzip", "brotli", "lz4", "zstd"):
        if codec != "none" and not pa.Codec.is_available(codec):
            continue
        for options in ({}, {"use_dictionary": False, "data_page_version": "2.0", "row_group_size": 3},
                        {"use_dictionary": False, "column_encoding": {"n": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY"}},
                        {"write_statistics": False, "version": "1.0", "use_byte_stream_split": False}):
            source, target = work / "c" / "train.parquet", work / ("d%d" % len(tried))
            write(source, table, compression=codec, **options)
            millrace("ingest", source, target, "-q")
            digests.add(json.loads(millrace("inspect", target, "--json").stdout)["digest"])
            tried.append(codec)
    assert len(digests) == 1, digests
    return "%d ways" % len(tried)


def test_large_types_and_image_forms(work):
    """Images as large_binary, binary and paths; dictionary columns; bytes exactly as they went in."""
    raw = [png(5), b"\xff\xd8 no picture", b"", png(6)]
    forms = {
        "struct": pa.array([{"path": None, "bytes": b} for b in raw], pa.struct([("path", pa.string()), ("bytes", pa.binary())])),
        "large": pa.array([{"bytes": b, "path": "x/%d.png" % i} for i, b in enumerate(raw)],
                          pa.struct([("bytes", pa.large_binary()), ("path", pa.large_string())])),
        "binary": pa.array(raw, pa.binary()),
        "dictionary": pa.array(raw, pa.binary()).dictionary_encode(),
    }
    for name, array in forms.items():
        path = write(work / (name + ".parquet"), pa.table({"picture": array}))
        _, _, found = rows_of(path, "--image-column", "picture")
        assert [found[i] for i in range(4)] == raw, name
    (work / "p/images").mkdir(parents=True)
    (work / "p/images/\u00fc 1.png").write_bytes(raw[0])
    write(work / "p/train.parquet", pa.table({"file": ["images/\u00fc 1.png", None, "images/2.png"], "label": ["A", "B", "C"]}))
    millrace("ingest", work / "p", work / "p.mr", "-q", "--image-column", "file", "--max-rejects", "1")
    assert [(i, m, s) for i, m, s in samples(work / "p.mr", "train")] == [
        (raw[0], {"label": 0, "class": "A", "columns": {"label": "A"}}, "images/\u00fc 1.png")]
    report = json.loads((work / "p.mr/report.json").read_text())
    assert "no image" in json.dumps(report["rejects"]) and "images/2.png" in json.dumps(report["missing"])


def test_metadata_of_an_image_folder(work):
    """metadata.parquet: file_name names the images beside it, without an option."""
    raw = [png(50 + i) for i in range(2)]
    for i, b in enumerate(raw):
        (work / "m/train").mkdir(parents=True, exist_ok=True)
        (work / ("m/train/%d.png" % i)).write_bytes(b)
    write(work / "m/train/metadata.parquet", pa.table({"file_name": ["1.png", "0.png"], "label": ["B", "A"]}))
    millrace("ingest", work / "m", work / "m.mr", "-q")
    assert [(i, m) for i, m, _ in samples(work / "m.mr", "train")] == [
        (raw[1], {"label": 1, "class": "B", "columns": {"label": "B"}}), (raw[0], {"label": 0, "class": "A", "columns": {"label": "A"}})]


def test_names_of_images(work):
    """A path that cannot stand in a tree gives way to a name of ours; the bytes stay."""
    paths = ["a.png", "sub/b.png", "/abs/c.png", "../d.png", "a/../e.png", "._f.png", "", None, "g" * 300 + ".png", "..",
             "n\0ul.png", "\u00e9 \u4e2d.png", "./h.png", "i//j.png", "k/"]
    data = [{"bytes": png(3 + i), "path": p} for i, p in enumerate(paths)]
    write(work / "s/train.parquet", pa.table({"image": pa.array(data, IMAGE)}))
    millrace("ingest", work / "s", work / "d", "-q")
    found = samples(work / "d", "train")
    assert [f[0] for f in found] == [d["bytes"] for d in data]
    ends = [f[2].split("/", 2)[2] for f in found]
    assert ends == ["a.png", "sub/b.png", "c.png", "d.png", "e.png", "image.png", "image.png", "image.png", "image.png",
                    "image.png", "image.png", "\u00e9 \u4e2d.png", "h.png", "j.png", "image.png"], ends
    millrace("export", work / "d", work / "back", "-q")


def test_labels_of_features(work):
    """ClassLabel names by the huggingface key; a choice among several; wrong types."""
    label = {"names": ["cat", "d\u00f6g", "cow"], "_type": "ClassLabel"}
    two = pa.table({"image": pa.array(images(2), IMAGE), "fine_label": [2, 0], "coarse_label": [1, 0]})
    write(work / "two/train.parquet", with_features(two, {"fine_label": label, "coarse_label": label}))
    refused(work, work / "two", "2 columns of classes; choose one with --label-column: fine_label, coarse_label", expect=2)
    millrace("ingest", work / "two", work / "fine", "-q", "--label-column", "fine_label")
    assert [m.get("class") for _, m, _ in samples(work / "fine", "train")] == ["cow", "cat"]
    for values, kind in (([3.0, float("nan")], "numbers"), ([True, False], "numbers"), ([None, None], "none")):
        write(work / "odd/train.parquet", pa.table({"image": pa.array(images(2), IMAGE), "label": values}))
        assert rows_of(work / "odd/train.parquet")[0]["label"] == {"column": "label", "kind": kind, "names": None}
    plain = pa.table({"image": pa.array(images(4), IMAGE), "kind": pa.array([2, 0, None, -1]), "x": [0.5] * 4,
                      "name": pa.array(["b", "a", "b", None]).dictionary_encode()})
    write(work / "s/train.parquet", with_features(plain, {"kind": label, "image": {"_type": "Image"}}))
    millrace("ingest", work / "s", work / "d", "-q")
    assert [m.get("class") for _, m, _ in samples(work / "d", "train")] == ["cow", "cat", None, None]
    millrace("ingest", work / "s", work / "named", "-q", "--label-column", "name")
    assert [m.get("class") for _, m, _ in samples(work / "named", "train")] == ["b", "a", "b", None]
    millrace("ingest", work / "s", work / "halves", "-q", "--label-column", "x")
    assert [m.get("class") for _, m, _ in samples(work / "halves", "train")] == ["0.5"] * 4
    refused(work, work / "s", "choose one of: image, kind, x, name", "--label-column", "y", expect=2)
    refused(work, work / "s", "--image-column x: has values of type double", "--image-column", "x", expect=2)
    refused(work, work / "s", "--text-column kind: has values of type int64", "--text-column", "kind", expect=2)
    for broken in (b"{", b"[]", b'{"info": 3}', b'{"info": {"features": [1]}}', b'{"info": {"features": {"kind": {"names": 3}}}}'):
        write(work / "b/train.parquet", plain.replace_schema_metadata({b"huggingface": broken}))
        assert rows_of(work / "b/train.parquet")[0]["label"] is None
    lists = pa.table({"image": pa.array(images(3), IMAGE), "label": [1, None, None], "labels": [[1], [2, 0], []]})
    for form in {"feature": label, "_type": "Sequence"}, [label]:
        write(work / "l/train.parquet", with_features(lists, {"label": label, "labels": form}))
        millrace("ingest", work / "l", work / "lists", "-q", "--force")
        assert [(m.get("class"), m.get("classes")) for _, m, _ in samples(work / "lists", "train")] == [
            ("d\u00f6g", None), (None, ["cat", "cow"]), (None, [])]
    for name, texts, wanted in ("captions", [["a", "b"], [], None], [["a", "b"], None, None]), ("texts", [["a"], [], None], [None] * 3):
        for kind in pa.list_(pa.string()), pa.large_list(pa.large_string()):
            write(work / "c/train.parquet", pa.table({"image": pa.array(images(3), IMAGE), name: pa.array(texts, kind)}))
            millrace("ingest", work / "c", work / "captions", "-q", "--force")
            assert [m.get("captions") for _, m, _ in samples(work / "captions", "train")] == wanted
    write(work / "c/train.parquet", pa.table({"image": pa.array(images(1), IMAGE), "captions": [[3]]}))
    millrace("ingest", work / "c", work / "captions", "-q", "--force")
    assert "captions" not in next(iter(samples(work / "captions", "train")))[1]
    write(work / "out/train.parquet", with_features(
        pa.table({"image": pa.array(images(1), IMAGE), "label": [3]}), {"label": label}))
    refused(work, work / "out", "label has no class of its list of names")


def test_several_image_columns_and_configs(work):
    """Without a choice: an error that lists them."""
    table = pa.table({"left": pa.array(images(3), IMAGE), "right": pa.array(images(3, 20), IMAGE), "n": [1, 2, 3]})
    for config in ("alpha", "b eta", "\u03b3"):
        write(work / "s" / config / "train-00000-of-00001.parquet", table)
    refused(work, work / "s", "3 configs; choose one with --config: alpha, b eta, \u03b3", expect=2)
    refused(work, work / "s", "2 image columns; choose one with --image-column: left, right", "--config", "\u03b3", expect=2)
    millrace("ingest", work / "s", work / "d", "-q", "--config", "b eta", "--image-column", "right")
    (image, meta, source), *_ = samples(work / "d", "train")
    assert image == png(20) and source == "b eta/train-00000-of-00001.parquet/000000000/0.png"
    assert base64.b64decode(meta["columns"]["left"]["bytes"]) == png(1)
    write(work / "none/train.parquet", pa.table({"n": [1], "b": [b"x"]}))
    refused(work, work / "none", "choose it with --image-column: n, b", expect=2)


def test_damaged_files(work):
    """Truncated anywhere, bytes changed, empty, no Parquet: an error that names the file, and nothing published."""
    r = random.Random(SEED)
    good = write(work / "good.parquet", pa.table({"image": pa.array(images(30), IMAGE), "n": list(range(30))}),
                 row_group_size=10).read_bytes()
    source = work / "s/train-00000-of-00001.parquet"
    source.parent.mkdir()
    for size in (0, 1, 4, 12, len(good) // 2, len(good) - 1, len(good) - 9):
        source.write_bytes(good[:size])
        refused(work, work / "s", "train-00000-of-00001.parquet: ")
    source.write_bytes(b"not a Parquet file, whatever its name says" * 50)
    refused(work, work / "s", "train-00000-of-00001.parquet: ")
    refusals = 0
    for _ in range(12):
        bad = bytearray(good)
        for _ in range(r.randrange(1, 30)):
            bad[r.randrange(len(bad))] = r.randrange(256)
        source.write_bytes(bad)
        p = subprocess.run([MILLRACE, "ingest", str(work / "s"), str(work / "d"), "-q", "--force"], stderr=subprocess.PIPE,
                           text=True, timeout=HANG)
        # Parquet has no checksum by default: what cannot be told is taken, what can be told is refused in words.
        assert p.returncode in (0, 1, 2, 3), p
        assert p.returncode == 0 or p.stderr.startswith("millrace: "), p.stderr
        refusals += p.returncode != 0
    return "%d of 12 changed files refused" % refusals


def test_page_checksums(work):
    """Where pages carry a CRC, no changed bit of theirs is taken; where they carry none, it cannot be told."""
    if "page_checksum_verification" not in inspect.signature(pq.ParquetFile.__init__).parameters:
        return "not tried: pyarrow %s has no page checksums" % pa.__version__
    r = random.Random(SEED)
    pictures = [png(3 + i, SEED + i) for i in range(6)]
    table = pa.table({"image": pa.array([{"bytes": p, "path": None} for p in pictures], IMAGE), "s": list("abcabc")})
    source = work / "s/train.parquet"
    tried = 0
    for options in ({}, {"data_page_version": "2.0"}, {"use_dictionary": False},
                    {"use_dictionary": False, "data_page_version": "2.0"}):
        good = write(source, table, compression="none", write_page_checksum=True, write_statistics=False,
                     **options).read_bytes()
        millrace("ingest", source, work / "good", "-q", "--force")
        for picture in pictures:
            at = good.index(picture) + r.randrange(len(picture))
            bad = bytearray(good)
            bad[at] ^= 1 << r.randrange(8)
            source.write_bytes(bad)
            refused(work, source, ["train.parquet: ", "CRC"])
            tried += 1
    return "%d bits" % tried


def test_zero_rows(work):
    """Empty tables beside full ones, and alone."""
    table = pa.table({"image": pa.array(images(3), IMAGE), "label": ["A", "B", "A"]})
    write(work / "s/train-00000-of-00002.parquet", table.slice(0, 0))
    write(work / "s/train-00001-of-00002.parquet", table)
    write(work / "s/test-00000-of-00001.parquet", table.slice(0, 0))
    millrace("ingest", work / "s", work / "d", "-q")
    assert list(json.loads((work / "d/manifest.json").read_text())["splits"]) == ["train"]
    assert len(samples(work / "d", "train")) == 3
    refused(work, work / "s/test-00000-of-00001.parquet", "holds no image for layout hub")


def test_any_batch_jobs_and_place(work):
    """Row groups of any size, any number of jobs, from a folder or a tar: the same shards."""
    table = pa.table({"image": pa.array(images(50), IMAGE), "label": [i % 5 for i in range(50)]})
    digests = set()
    for number, (group, jobs) in enumerate(((1, 1), (7, 4), (50, 2))):
        for part in range(3):
            write(work / "s/data" / ("train-%05d-of-00003.parquet" % part), table.slice(part * 17, 17), row_group_size=group)
        source = work / "s"
        if number == 2:
            source = work / "s.tar"
            with tarfile.open(source, "w") as tar:
                tar.add(work / "s/data", "data")
        millrace("ingest", source, work / ("d%d" % number), "-q", "--jobs", jobs)
        digests.add(json.loads(millrace("inspect", work / ("d%d" % number), "--json").stdout)["digest"])
    assert len(digests) == 1, digests


# ---- bombs ----------------------------------------------------------------------------------------------------------


def test_memory_bombs(work):
    """Files of a kilobyte whose rows need gigabytes: one value of a dictionary in each row, one list of zeros."""
    value = pa.DictionaryArray.from_arrays(pa.array([0] * 1024, pa.int32()), pa.array([bytes(9 << 20)], pa.binary()))
    zeros = 10**8
    row = pa.Array.from_buffers(pa.int8(), zeros, [None, pa.py_buffer(bytes(zeros))])
    listed = pa.ListArray.from_arrays(pa.array([0, zeros], pa.int32()), row)
    tables = {
        "dictionary": pa.table({"picture": value}),
        "text": pa.table({"image": pa.array(images(1) * 200, IMAGE), "text": value.slice(0, 200)}),
        "list": pa.table({"image": pa.array(images(1), IMAGE), "numbers": listed}),
    }
    for name, table in tables.items():
        path = write(work / ("%s.parquet" % name), table, compression="zstd", dictionary_pagesize_limit=1 << 30,
                     store_schema=False)
        assert path.stat().st_size < 100000, path.stat().st_size
        options = ["--image-column", "picture"] if name == "dictionary" else []
        refused(work, path, ["%s.parquet: " % name, "like an archive bomb; --max-ratio N raises the limit"], *options)


def test_repeated_pictures(work):
    """A picture that a dictionary holds once for many rows is not a bomb: its rows are read a few at a time."""
    body = b"teSt" + random.Random(SEED).randbytes(1 << 20)
    extra = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    picture = {"bytes": png(5)[:-12] + extra + png(5)[-12:], "path": "x.png"}
    write(work / "s/train.parquet", pa.table({"image": pa.array([picture] * 80, IMAGE)}), compression="zstd")
    millrace("ingest", work / "s", work / "d", "-q")
    assert json.loads((work / "d/manifest.json").read_text())["splits"]["train"]["samples"] == 80


# ---- the reader at work ---------------------------------------------------------------------------------------------


def test_reader_killed(work):
    """A real reader killed in the middle of a file: exit code 3, and nothing published."""
    big = [{"bytes": random.Random(i).randbytes(1 << 20), "path": "x"} for i in range(8)]
    write(work / "s/train.parquet", pa.table({"image": pa.array(big * 12, IMAGE)}), row_group_size=4)
    child = subprocess.Popen([MILLRACE, "ingest", str(work / "s"), str(work / "refused"), "-q"], stderr=subprocess.PIPE,
                             text=True)
    killed = False
    while child.poll() is None and not killed:
        for pid in pathlib.Path("/proc/%d/task/%d/children" % (child.pid, child.pid)).read_text().split() + sum(
                (t.read_text().split() for t in pathlib.Path("/proc/%d/task" % child.pid).glob("*/children")), []):
            if b"parquet_rows" in pathlib.Path("/proc/%s/cmdline" % pid).read_bytes():
                time.sleep(0.05)
                os.kill(int(pid), signal.SIGKILL)
                killed = True
                break
    words = child.communicate(timeout=HANG)[1]
    assert killed and child.returncode == 3 and "was killed by signal 9" in words, (killed, child.returncode, words)
    assert not (work / "refused").exists() and not (work / "refused.partial").exists()


def test_without_pyarrow(work):
    """The error says the one command that installs it."""
    write(work / "s/train.parquet", pa.table({"image": pa.array(images(1), IMAGE)}))
    (work / "empty").mkdir()
    (work / "python").write_text("#!/bin/sh\nexec %s -S -E \"$@\"\n" % os.path.realpath(sys.executable))
    (work / "python").chmod(0o755)
    refused(work, work / "s", ["pyarrow is missing; install it with: ", "install pyarrow"], expect=3,
            env={"MILLRACE_PYTHON": str(work / "python")})


def main(names):
    tests = {n[5:]: f for n, f in globals().items() if n.startswith("test_") and (not names or n[5:] in names)}
    failed = 0
    for name, test in tests.items():
        with tempfile.TemporaryDirectory(prefix="millrace-hub-") as work:
            try:
                said = test(pathlib.Path(work))
                print("ok      %s%s" % (name, " (%s)" % said if said else ""), flush=True)
            except Exception as why:  # one failure does not hide the next
                failed += 1
                import traceback
                traceback.print_exc()
                print("FAILED  %s: %s" % (name, type(why).__name__), flush=True)
    print("%d passed, %d failed" % (len(tests) - failed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:]))
