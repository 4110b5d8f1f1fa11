#!/usr/bin/env python3
"""parquet_rows.py - one Parquet file with an image column as a tar stream, one row after the other.

    parquet_rows.py [--image-column NAME] [--label-column NAME] [--text-column NAME] FILE > rows.tar

Entries, in this order:

    schema.json               {"rows": N, "image": NAME, "label": null or {"column", "kind", "names"}, "columns": [...],
                             "objects": null or the class names of the column "objects", "captions": true or false:
                             whether there is a column "captions" of lists of texts}
                              kind: "names" (integers, or with "list": true lists of them), "numbers" (also booleans),
                              "texts", "none" (values of other types)
    000000000.json            row 0 as one JSON object: every column but the image, in the file's order
    000000000/497.jpeg        its image, byte for byte, under the file name that the row gives it; or
    000000000.path            the path of its image, where the row holds no bytes; or neither: the row has no image

Invariant: what is written depends on the file and the options alone; memory is a batch of rows (BATCH bytes), not a row
group and not the file.  Exit codes: 0 done; 1 the file is bad; 2 wrong use; 3 something is missing; 4 out of memory, which
millrace limits (ingest/layout/hub/reader.c).  Complaints are one line on stderr.
"""

import base64
import fcntl
import json
import math
import os
import sys
import sysconfig

# Address space is limited: no reserve of a GiB, and no threads with a stack and an arena each.
for name, value in (("MIMALLOC_ARENA_RESERVE", "64MiB"), ("OMP_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "1"),
                    ("MKL_NUM_THREADS", "1")):
    os.environ.setdefault(name, value)

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    pa = None

BATCH = 16 << 20  # bytes of a batch, about: rows are counted by their row group's average
BATCH_ROWS = 1024
REPEATED = 128 << 20  # bytes of a batch whose values all are the longest of a dictionary
VALUE = 4 << 20  # what such a value is taken to be at most: the group's sizes are those of a stranger
STREAM = 1 << 20  # read ahead of a column chunk; the whole chunk would be in memory without it
PIECES = 256  # of one writev, well under IOV_MAX
PIPE = 1 << 20

IMAGE_NAMES = (  # first bytes and the end of a name, for images that have none
    (b"\xff\xd8\xff", "jpg"),
    (b"\x89PNG", "png"),
    (b"RIFF", "webp"),
    (b"GIF8", "gif"),
    (b"BM", "bmp"),
    (b"II*\0", "tif"),
    (b"MM\0*", "tif"),
)


class Bad(Exception):
    """The file cannot be read as asked: words for people, and the exit code."""

    def __init__(self, code, words):
        super().__init__(words)
        self.code = code


# ---- tar ------------------------------------------------------------------------------------------------------------


def tar_header(name, size, kind=b"0"):
    """A ustar header; a name that is too long for it is put into a GNU long name entry before."""
    if len(name) > 100:
        long_name = name + b"\0"
        return tar_header(b"././@LongLink", len(long_name), b"L") + long_name + padding(len(long_name)) + tar_header(
            name[:100], size, kind)
    head = b"%s%s0000644\0000000000\0000000000\0%011o\00000000000000\0" % (name, bytes(100 - len(name)), size)
    tail = b"%s%sustar  \0" % (kind, bytes(100))
    return b"%s%06o\0 %s%s" % (head, sum(head) + sum(tail) + 8 * 32, tail, bytes(512 - 148 - 8 - len(tail)))


def padding(size):
    return bytes(-size % 512)


class Tar:
    """Entries onto a pipe, many pieces a call and no copy of the image bytes."""

    def __init__(self, fd):
        self.fd = fd
        self.pieces = []
        try:
            fcntl.fcntl(fd, 1031, PIPE)  # F_SETPIPE_SZ
        except OSError:
            pass  # no pipe, or no right to a larger one

    def add(self, name, data):
        size = len(data)
        self.pieces += (tar_header(name, size), data, padding(size))
        if len(self.pieces) >= PIECES:
            self.flush()

    def flush(self):
        pieces = [memoryview(p) for p in self.pieces if len(p)]
        self.pieces = []
        while pieces:
            done = os.writev(self.fd, pieces)
            at = 0
            while at < len(pieces) and done >= len(pieces[at]):
                done -= len(pieces[at])
                at += 1
            pieces = pieces[at:]
            if done:
                pieces[0] = pieces[0][done:]

    def end(self):
        self.pieces.append(bytes(1024))
        self.flush()


# ---- values as JSON -------------------------------------------------------------------------------------------------


def civil(days):
    """Year, month, day of a count of days since 1970-01-01, proleptic Gregorian, for any year.
    Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days."""
    days += 719468
    era, day_of_era = divmod(days, 146097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (month <= 2), month, day


DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def date_text(days):
    year, month, day = civil(days)
    return "%s%04d-%02d-%02d" % ("-" if year < 0 else "", abs(year), month, day)


def clock_text(count, digits):
    seconds, part = divmod(count, 10**digits)
    text = "%02d:%02d:%02d" % (seconds // 3600, seconds // 60 % 60, seconds % 60)
    return text + (".%0*d" % (digits, part) if digits else "")


def timestamp_text(count, digits, zone):
    days, rest = divmod(count, 86400 * 10**digits)
    return "%sT%s%s" % (date_text(days), clock_text(rest, digits), "Z" if zone else "")


def duration_text(count, digits):
    seconds, part = divmod(abs(count), 10**digits)
    return "%sPT%d%sS" % ("-" if count < 0 else "", seconds, ".%0*d" % (digits, part) if digits else "")


def float_value(value):
    """JSON has no word for these three."""
    value = float(value)
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def counted(array, bits, text):
    whole = array.cast(pa.int32() if bits == 32 else pa.int64()).to_pylist()
    return [None if v is None else text(v) for v in whole]


def strings(array):
    try:
        return array.to_pylist()
    except UnicodeDecodeError:  # not UTF-8: its other bytes stay readable as \xHH
        raw = array.cast(pa.large_binary()).to_pylist()
        return [None if v is None else v.decode("utf-8", "backslashreplace") for v in raw]


def lists(array):
    items = iter(values(array.flatten()))
    lengths = [None if not s.is_valid else len(s) for s in array]
    return [None if n is None else [next(items) for _ in range(n)] for n in lengths]


def structs(array):
    names = [f.name for f in array.type]
    fields = [values(array.field(i)) for i in range(len(names))]
    valid = array.is_valid().to_pylist()
    return [dict(zip(names, row)) if ok else None for ok, row in zip(valid, zip(*fields))] if fields else [
        {} if ok else None for ok in valid]


def maps(array):
    """Keys may be of any type and occur twice, so a map is a list of pairs."""
    out = []
    for scalar in array:
        if not scalar.is_valid:
            out.append(None)
            continue
        pairs = scalar.values  # a struct array
        out.append([list(pair) for pair in zip(values(pairs.field(0)), values(pairs.field(1)))])
    return out


def values(array):
    """The items of an Arrow array as what json.dumps writes."""
    t, types = array.type, pa.types
    if isinstance(t, pa.BaseExtensionType):
        return values(array.storage)
    if types.is_dictionary(t):
        return values(array.dictionary_decode())
    if types.is_struct(t):
        return structs(array)
    if types.is_map(t):
        return maps(array)
    if types.is_list(t) or types.is_large_list(t) or types.is_fixed_size_list(t):
        return lists(array)
    if types.is_floating(t):
        return [None if v is None else float_value(v) for v in array.to_pylist()]
    if types.is_date(t):
        days = 1 if types.is_date32(t) else 86400000
        return counted(array, t.bit_width, lambda v: date_text(v // days))
    if types.is_time(t):
        return counted(array, t.bit_width, lambda v: clock_text(v, DIGITS[t.unit]))
    if types.is_timestamp(t):
        return counted(array, 64, lambda v: timestamp_text(v, DIGITS[t.unit], t.tz))
    if types.is_duration(t):
        return counted(array, 64, lambda v: duration_text(v, DIGITS[t.unit]))
    if types.is_decimal(t):
        return [None if v is None else str(v) for v in array.to_pylist()]
    if is_text(t):
        return strings(array)
    if is_binary(t) or types.is_fixed_size_binary(t):
        return [None if v is None else base64.b64encode(v).decode("ascii") for v in array.to_pylist()]
    if types.is_integer(t) or types.is_boolean(t) or types.is_null(t):
        return array.to_pylist()
    raise Bad(1, "holds values of type %s, which have no form in JSON here" % t)


# ---- the schema: which column is what -------------------------------------------------------------------------------


def is_text(t):
    view = getattr(pa.types, "is_string_view", lambda _: False)
    return pa.types.is_string(t) or pa.types.is_large_string(t) or view(t)


def is_binary(t):
    view = getattr(pa.types, "is_binary_view", lambda _: False)
    return pa.types.is_binary(t) or pa.types.is_large_binary(t) or view(t)


def plain(t):
    return t.value_type if pa.types.is_dictionary(t) else t


def is_image(t):
    """struct<bytes: binary, path: string>, in either order."""
    if not pa.types.is_struct(t) or sorted(f.name for f in t) != ["bytes", "path"]:
        return False
    kinds = {f.name: f.type for f in t}
    return is_binary(kinds["bytes"]) and (is_text(kinds["path"]) or pa.types.is_null(kinds["path"]))


def listing(names):
    return ", ".join(names) if names else "none"


def find(schema, name, option):
    if name not in schema.names:
        raise Bad(2, "%s %s: there is no such column; choose one of: %s" % (option, name, listing(schema.names)))
    return schema.field(name).type


def image_column(schema, features, asked):
    if asked is not None:
        t = find(schema, asked, "--image-column")
        if not (is_image(t) or is_binary(plain(t)) or is_text(plain(t))):
            raise Bad(2, "--image-column %s: has values of type %s; an image is struct<bytes, path>, binary, or the path "
                      "of a file" % (asked, t))
        return asked
    # An Image of the features is a struct as well; Audio is one, too, and only the features tell them apart.
    found = [f.name for f in schema if is_image(f.type) and features.get(f.name, {}).get("_type", "Image") == "Image"]
    if len(found) == 1:
        return found[0]
    if found:
        raise Bad(2, "has %d image columns; choose one with --image-column: %s" % (len(found), listing(found)))
    if "file_name" in schema.names and is_text(plain(schema.field("file_name").type)):
        return "file_name"  # metadata.parquet of an ImageFolder: the images are beside it
    raise Bad(2, "has no column of images (struct<bytes: binary, path: string>); if one of these holds them, choose it "
              "with --image-column: %s; else leave the file out with --exclude" % listing(schema.names))


def has_captions(schema):
    t = plain(schema.field("captions").type) if "captions" in schema.names else pa.null()
    return is_list(t) and is_text(plain(t.value_type))


def class_names(features, column):
    feature = features.get(column, {})
    names = feature.get("names") if feature.get("_type") == "ClassLabel" else None
    if isinstance(names, list) and all(isinstance(n, str) for n in names):
        return names
    return None


def is_list(t):
    return pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t)


def list_names(schema, features, column):
    """The class names of a column of lists of classes."""
    t, feature = plain(schema.field(column).type), features.get(column, {}).get("feature")
    found = isinstance(feature, dict) and is_list(t) and pa.types.is_integer(plain(t.value_type))
    return class_names({column: feature}, column) if found else None


def object_names(features):
    """The class names of the column "objects", in any of the forms in which features have been written."""
    objects = features.get("objects", {})
    objects = objects.get("feature", objects)
    for key in "categories", "category":
        feature = objects.get(key) if isinstance(objects, dict) else None
        if isinstance(feature, list) and len(feature) == 1:
            feature = feature[0]
        if isinstance(feature, dict) and isinstance(feature.get("feature"), dict):
            feature = feature["feature"]
        if isinstance(feature, dict) and class_names({key: feature}, key):
            return feature["names"]
    return None


def label_of(schema, features, asked, image):
    column = asked
    lists = [n for n in schema.names if n != image and list_names(schema, features, n)]
    if column in lists:
        return {"column": column, "kind": "names", "names": list_names(schema, features, column), "list": True}
    if asked is None:
        found = [n for n in schema.names if n != image and class_names(features, n) is not None]
        if len(found) > 1 and "label" not in schema.names:
            raise Bad(2, "has %d columns of classes; choose one with --label-column: %s" % (len(found), listing(found)))
        if len(lists) == 1 and (not found or (lists == ["labels"] and found == ["label"])):
            return {"column": lists[0], "kind": "names", "names": list_names(schema, features, lists[0]), "list": True}
        column = found[0] if len(found) == 1 else "label"
        if column not in schema.names or column == image:
            return None
    t = plain(find(schema, column, "--label-column"))
    names = class_names(features, column)
    if pa.types.is_integer(t):
        return {"column": column, "kind": "names" if names else "numbers", "names": names}
    if pa.types.is_floating(t) or pa.types.is_boolean(t):  # 3.0 is 3, NaN means no label, True is a class
        return {"column": column, "kind": "numbers", "names": None}
    if is_text(t):
        return {"column": column, "kind": "texts", "names": None}
    if asked is None:
        return {"column": column, "kind": "none", "names": None}
    raise Bad(2, "--label-column %s: has values of type %s; a label is a whole number, a text or a list of named classes"
              % (column, t))


def check_text(schema, asked):
    if asked is None:
        return
    t = plain(find(schema, asked, "--text-column"))
    if not is_text(plain(t.value_type) if is_list(t) else t):
        raise Bad(2, "--text-column %s: has values of type %s; use a column of texts or of lists of texts" % (asked, t))


def features_of(schema):
    """What the datasets library says about the columns, {} if it says nothing that can be used; [x] is {"feature": x}."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, ValueError, TypeError):
        return {}
    if not isinstance(features, dict):
        return {}
    features = {k: {"feature": v[0]} if isinstance(v, list) and len(v) == 1 else v for k, v in features.items()}
    return {k: v for k, v in features.items() if isinstance(v, dict)}


# ---- rows -----------------------------------------------------------------------------------------------------------


def image_name(path, data):
    """The row's own name for its image if it is valid in a tree, else one by its first bytes."""
    parts = (path or "").split("/")
    for name in (path or "", parts[-1]):
        if all(0 < len(p.encode("utf-8", "replace")) <= 255 and p not in (".", "..") and not p.startswith("._")
               and "\0" not in p for p in name.split("/")) and len(name) <= 800:
            return name.encode("utf-8", "backslashreplace")
    start = bytes(data[:4])
    return b"image." + next((end for magic, end in IMAGE_NAMES if start.startswith(magic)), "bin").encode()


def image_parts(column):
    """Arrays of the images' bytes and paths; one of them may be None."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_struct(column.type):
        kinds = {f.name: i for i, f in enumerate(column.type)}
        fields = column.flatten()  # a null struct has null fields
        return fields[kinds["bytes"]], strings(fields[kinds["path"]])
    if is_text(column.type):
        return None, strings(column)
    return column, None


def write_batch(tar, batch, image, first):
    names = batch.schema.names
    data, paths = image_parts(batch.column(names.index(image)))
    columns = [(n, values(batch.column(i))) for i, n in enumerate(names) if n != image]
    for row in range(batch.num_rows):
        stem = b"%09d" % (first + row)
        text = json.dumps({n: column[row] for n, column in columns}, ensure_ascii=False, allow_nan=False)
        tar.add(stem + b".json", text.encode("utf-8", "backslashreplace"))
        path = paths[row] if paths is not None else None
        if data is not None and data[row].is_valid:
            piece = memoryview(data[row].as_buffer())
            tar.add(stem + b"/" + image_name(path, piece), piece)
        elif path:
            tar.add(stem + b".path", path.encode("utf-8", "backslashreplace"))
    tar.flush()  # the pieces point into the batch


def batch_rows(group):
    """A dictionary has a value once for all rows that repeat it, so its size says nothing about a row's."""
    size = max(1, group.total_byte_size // max(1, group.num_rows))
    columns = [group.column(i) for i in range(group.num_columns)]
    longest = sum(min(c.total_uncompressed_size, VALUE) for c in columns if any("DICTIONARY" in e for e in c.encodings))
    return max(1, min(BATCH_ROWS, BATCH // size, REPEATED // max(1, longest)))


def open_file(path):
    """Pages that carry a CRC are compared with it; few writers give them one, and pyarrow before 15 cannot."""
    options = {"buffer_size": STREAM, "pre_buffer": False}
    try:
        return pq.ParquetFile(path, page_checksum_verification=True, **options)
    except TypeError:
        return pq.ParquetFile(path, **options)


def write_rows(path, options, out):
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    parquet = open_file(path)
    schema, rows = parquet.schema_arrow, parquet.metadata.num_rows
    twice = sorted({n for n in schema.names if schema.names.count(n) > 1})
    if twice:
        raise Bad(1, "has two columns of the same name: %s" % listing(twice))
    features = features_of(schema)
    image = image_column(schema, features, options.get("--image-column"))
    label = label_of(schema, features, options.get("--label-column"), image)
    check_text(schema, options.get("--text-column"))
    tar = Tar(out)
    head = {"rows": rows, "image": image, "label": label, "columns": [n for n in schema.names if n != image],
            "objects": object_names(features) if "objects" in schema.names else None, "captions": has_captions(schema)}
    tar.add(b"schema.json", json.dumps(head).encode())
    first = 0
    for group in range(parquet.num_row_groups):
        size = batch_rows(parquet.metadata.row_group(group))
        for batch in parquet.iter_batches(batch_size=size, row_groups=[group], use_threads=False):
            write_batch(tar, batch, image, first)
            first += batch.num_rows
    if first != rows:
        raise Bad(1, "holds %d rows where its footer promises %d" % (first, rows))
    tar.end()


# ---- the command ----------------------------------------------------------------------------------------------------


def how_to_install():
    """One command; a Python that the system's packages own takes nothing outside of a virtual environment."""
    python = os.environ.get("MILLRACE_PYTHON") or "python3"
    managed = os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))
    if managed and sys.prefix == sys.base_prefix:
        return ("pyarrow is missing; install it with: python3 -m venv ~/.millrace && ~/.millrace/bin/pip install pyarrow "
                "(then set MILLRACE_PYTHON=~/.millrace/bin/python)")
    return "pyarrow is missing; install it with: %s -m pip install pyarrow" % python


def parse(argv):
    known = ("--image-column", "--label-column", "--text-column")
    options, at = {}, 0
    while at + 1 < len(argv) and argv[at] in known:
        options[argv[at]] = argv[at + 1]
        at += 2
    if len(argv) - at != 1:
        raise Bad(2, "use: parquet_rows.py [--image-column NAME] [--label-column NAME] [--text-column NAME] FILE")
    return options, argv[at]


def main(argv):
    try:
        options, path = parse(argv)
        if pa is None:
            raise Bad(3, how_to_install())
        write_rows(path, options, sys.stdout.fileno())
        return 0
    except Bad as bad:
        code, words = bad.code, str(bad)
    except MemoryError as why:
        code, words = 4, "out of memory: %s" % (str(why) or type(why).__name__)
    except BrokenPipeError as why:
        code, words = 3, str(why) or type(why).__name__
    except (pa.ArrowException if pa else ValueError, OSError, ValueError) as why:
        code, words = 1, str(why) or type(why).__name__
    print(" ".join(words.split())[:1500], file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
