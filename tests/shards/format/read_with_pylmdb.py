#!/usr/bin/env python3
"""Reads a shard with py-lmdb and compares every image and meta with what `millrace show` and `export` give.

    read_with_pylmdb.py MILLRACE      exit status 77 (skipped) where python has no lmdb
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import lmdb
except ImportError:
    print("skipped: python has no module lmdb")
    sys.exit(77)


def main(millrace):
    with tempfile.TemporaryDirectory() as work:
        source, dataset, back = (os.path.join(work, n) for n in ("source", "dataset", "back"))
        run = lambda *args: subprocess.run([millrace, *args], check=True, stdout=subprocess.PIPE).stdout
        run("sample", source, "--layout", "newyorker", "--images", "30", "--quiet")
        run("ingest", source, dataset, "--quiet")
        run("export", dataset, back, "--quiet")
        manifest = json.load(open(os.path.join(dataset, "manifest.json")))
        compared = 0
        for split, facts in manifest["splits"].items():
            for shard in facts["shards"]:
                env = lmdb.open(os.path.join(dataset, shard["name"] + ".mdb"), subdir=False, readonly=True, lock=False,
                                max_dbs=2)
                images, metas = env.open_db(b"image", create=False), env.open_db(b"meta", create=False)
                with env.begin() as txn:
                    assert txn.stat(metas)["entries"] == shard["samples"]
                    assert txn.stat(images)["entries"] == shard["images"]
                    for n in range(shard["first"], shard["first"] + shard["samples"]):
                        meta = json.loads(txn.get(n.to_bytes(8, "big"), db=metas))
                        holder = meta.get("image_of", n)
                        image = txn.get(holder.to_bytes(8, "big"), db=images)
                        assert image == open(os.path.join(back, meta["source"]), "rb").read()
                        if n % 7 == 0:
                            shown = json.loads(run("show", dataset, split, str(n), "--json"))
                            assert shown["meta"] == meta, (shown["meta"], meta)
                            assert run("show", dataset, split, str(n), "--image", "-") == image
                        compared += 1
                env.close()
        assert compared > 30
        print("compared %d samples" % compared)


if __name__ == "__main__":
    main(sys.argv[1])
