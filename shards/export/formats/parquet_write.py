#!/usr/bin/env python3
"""parquet_write.py - rows of images from standard input as one Parquet file, in the hub's form.

    parquet_write.py FILE < rows

The rows are lines of JSON, an image's bytes after its line:

    {"names": ["cat", "dog"], "members": ["label", "captions"], "objects": ["bbox", "categories"]}
    {"path": "1.jpg", "bytes": 4711, "label": 0, "captions": ["a cat"]}    4711 bytes, then the next line
    {"rows": 1}

Invariant: FILE is complete when the exit code is 0; input that ends before the last line is a failure.  Memory is a row
group (GROUP_ROWS rows, or GROUP bytes).  Exit codes: 0 done; 1 the rows are not as above; 3 something is missing, or the
system failed.  Complaints are one line on stderr.
"""

import json
import os
import sys
import sysconfig

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    pa = None

GROUP_ROWS = 100  # as the hub writes images: its viewer reads a page of them at a time
GROUP = 64 << 20


class Bad(Exception):
    """The rows are not what they should be: words for people."""


def value(dtype):
    return {"dtype": dtype, "_type": "Value"}


def types(names):
    """Arrow's type and the hub's feature of every member.  The hub writes a list of X as [X]."""
    number = (pa.float64(), value("float64"))
    text = (pa.string(), value("string"))
    label = (pa.int64(), {"names": names, "_type": "ClassLabel"}) if names else (pa.int64(), value("int64"))

    def listed(item):
        return pa.list_(item[0]), [item[1]]

    members = {"label": label, "labels": listed(label), "captions": listed(text), "columns": text}
    parts = {"bbox": listed(listed(number)), "categories": listed(label), "polygons": listed(listed(listed(number))),
             "oriented": listed(listed(number)), "keypoints": listed(listed(number)),
             "crowd": listed((pa.bool_(), value("bool")))}
    return members, parts


def schema_of(head):
    members, parts = types(head["names"])
    fields = [("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())]))]
    features = {"image": {"_type": "Image"}}
    for name in head["members"]:
        if name == "objects":
            inner = head["objects"]
            fields.append((name, pa.struct([(p, parts[p][0]) for p in inner])))
            features[name] = {p: parts[p][1] for p in inner}
        else:
            fields.append((name, members[name][0]))
            features[name] = members[name][1]
    note = json.dumps({"info": {"features": features}}, ensure_ascii=False)
    return pa.schema(fields, metadata={"huggingface": note})


def rows_of(source):
    """Each row as a dictionary, its image in place of its size."""
    count = 0
    while True:
        line = source.readline()
        if not line:
            raise Bad("the rows end before their number")
        row = json.loads(line)
        if "rows" in row:
            if row["rows"] != count:
                raise Bad("%d rows where %d were announced" % (count, row["rows"]))
            return
        size = row.pop("bytes")
        data = source.read(size)
        if len(data) != size:
            raise Bad("the picture of row %d ends after %d of %d bytes" % (count, len(data), size))
        row["image"] = {"bytes": data, "path": row.pop("path")}
        count += 1
        yield row


def write(source, path):
    schema = schema_of(json.loads(source.readline()))
    options = {"compression": "snappy", "use_dictionary": False, "write_statistics": False}
    if int(pa.__version__.split(".")[0]) >= 12:
        options["write_page_checksum"] = True
    with pq.ParquetWriter(path, schema, **options) as out:
        group, size = [], 0
        for row in rows_of(source):
            group.append(row)
            size += len(row["image"]["bytes"])
            if len(group) == GROUP_ROWS or size >= GROUP:
                out.write_table(pa.Table.from_pylist(group, schema=schema))
                group, size = [], 0
        if group:
            out.write_table(pa.Table.from_pylist(group, schema=schema))


def how_to_install():
    """One command; a Python that the system's packages own takes nothing outside of a virtual environment."""
    python = os.environ.get("MILLRACE_PYTHON") or "python3"
    managed = os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))
    if managed and sys.prefix == sys.base_prefix:
        return ("pyarrow is missing; install it with: python3 -m venv ~/.millrace && ~/.millrace/bin/pip install pyarrow "
                "(then set MILLRACE_PYTHON=~/.millrace/bin/python)")
    return "pyarrow is missing; install it with: %s -m pip install pyarrow" % python


def main(argv):
    try:
        if len(argv) != 1:
            raise Bad("use: parquet_write.py FILE < rows")
        if pa is None:
            raise OSError(how_to_install())
        write(sys.stdin.buffer, argv[0])
        return 0
    except (OSError, MemoryError) as why:
        code, words = 3, str(why) or type(why).__name__
    except (Bad, KeyError, ValueError, TypeError) + ((pa.ArrowException,) if pa else ()) as why:
        code, words = 1, str(why) or type(why).__name__
    print(" ".join(words.split())[:1500], file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
