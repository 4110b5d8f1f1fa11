"""remote_clients.py LOADER ENDPOINT FOLDER [compare] - reads all images that one loader finds at an S3 service, once.

Prints a JSON object for remote_peers.py; with `compare`, also how many images differ from every file, which takes time.  Invariant: what is timed begins when the loader is made, after all imports.
"""
import hashlib
import json
import os
import pathlib
import resource
import sys
import tempfile
import time

def names(folder, end):
    return sorted(path.name for path in (folder / end).iterdir())


def read_webdataset(endpoint, folder, cache):
    import webdataset

    def begin():
        urls = [f"{endpoint}/bucket/tar/{name}" for name in names(folder, "tar")]
        return (sample["jpg"] for sample in webdataset.WebDataset(urls, shardshuffle=False))

    return begin


def read_mosaic(endpoint, folder, cache):
    import streaming

    def begin():
        data = streaming.StreamingDataset(remote="s3://bucket/mds", local=str(cache), shuffle=False, batch_size=1)
        return (sample["jpg"] for sample in data)

    return begin


def read_litdata(endpoint, folder, cache):
    import litdata
    import litdata.streaming.downloader

    # obstore, which it prefers to boto3, refuses a service without TLS, and takes no setting from here
    litdata.streaming.downloader._OBSTORE_AVAILABLE = False

    def begin():
        data = litdata.StreamingDataset("s3://bucket/litdata", cache_dir=str(cache), shuffle=False,
                                        storage_options={"endpoint_url": endpoint})
        return (bytes(sample["jpg"]) for sample in data)

    return begin


def read_datasets(endpoint, folder, cache):
    import datasets

    def begin():
        urls = [f"{endpoint}/bucket/tar/{name}" for name in names(folder, "tar")]
        data = datasets.load_dataset("webdataset", data_files={"train": urls}, split="train", streaming=True,
                                     cache_dir=str(cache))
        return (sample["jpg"]["bytes"] for sample in data.cast_column("jpg", datasets.Image(decode=False)))

    return begin


def read_millrace(endpoint, folder, cache):
    sys.path.insert(0, os.path.join(os.path.dirname(os.environ["MILLRACE_BIN"]), "python"))
    import millrace

    def begin():
        data = millrace.Dataset("s3://bucket/data")
        for images, _ in data.loader("train", 64, shuffle=False, threads=2, output="encoded", drop_last=False):
            for image in images:
                yield bytes(image)

    return begin


# by the names of their packages
CLIENTS = {
    "millrace": read_millrace,
    "webdataset": read_webdataset,
    "mosaicml-streaming": read_mosaic,
    "litdata": read_litdata,
    "datasets": read_datasets,
}


def used():
    parts = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in parts)


def client(name, endpoint, folder, compare):
    good = set(json.loads((folder / "hashes.json").read_text()))
    result = {"records": 0, "wrong": 0, "bytes": 0, "first": None, "end": "the end of the data"}
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        begin = CLIENTS[name](endpoint, folder, pathlib.Path(cache) / "cache")
        cpu, start = used(), time.monotonic()
        try:
            for image in begin():
                result["first"] = result["first"] or time.monotonic() - start
                result["records"] += 1
                result["bytes"] += len(image)
                result["wrong"] += compare and hashlib.sha256(image).hexdigest() not in good
        except Exception as error:  # whatever a loader says about a fault is its answer
            result["end"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        result.update(seconds=time.monotonic() - start, cpu=used() - cpu)
    print(json.dumps(result), flush=True)
    os._exit(0)  # threads of some loaders do not end


if __name__ == "__main__":
    client(sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4:] == ["compare"])
