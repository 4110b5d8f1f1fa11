#!/usr/bin/env python3
"""remote.py [--images N] [--rounds N] [--delay MS] - what reading a dataset from a web server costs.

Starts nginx on this host, without and with a delay of each byte, each way, and measures alternately: the first batch, records
by range, whole shards, and curl as the limit.  Prints medians of wall time and rate, and the client's CPU time per GB.
Client, delay and server share the processors, so the figures are floors.  Invariant: each measurement of millrace starts
with an empty cache, and its output is compared with that of the local dataset.
"""

import argparse
import asyncio
import contextlib
import os
import pathlib
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

MILLRACE = os.environ.get("MILLRACE_BIN", "build/release/millrace")
BATCH = 64


async def relay(reader, writer, delay):
    """Each piece leaves `delay` seconds after it came."""
    loop = asyncio.get_running_loop()
    while piece := await reader.read(1 << 18):
        loop.call_later(delay, writer.write, piece)
        if writer.transport.get_write_buffer_size() > 16 << 20:
            await writer.drain()
    loop.call_later(delay, writer.close)


async def proxy(port, target, delay):
    async def serve(reader, writer):
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", target)
        for stream in (writer, there_writer):
            stream.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.gather(relay(reader, there_writer, delay), relay(there_reader, writer, delay), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=512)
    await server.serve_forever()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def workplace():
    """A folder, and a list of processes to add to; both are gone in the end."""
    started = []
    with tempfile.TemporaryDirectory() as name:
        try:
            yield pathlib.Path(name), started
        finally:
            for process in started:
                process.kill()
                process.wait()


def start_nginx(folder, port):
    (folder / "nginx.conf").write_text(
        f"pid {folder}/pid; error_log {folder}/log; daemon off; master_process off; events {{ worker_connections 2048; }}\n"
        f"http {{ access_log off; sendfile on; keepalive_requests 1000000; root {folder}; client_body_temp_path {folder}/t;\n"
        f"server {{ listen 127.0.0.1:{port}; }} }}\n"
    )
    return subprocess.Popen(["nginx", "-c", str(folder / "nginx.conf")])


def timed(command, cache):
    """Seconds, seconds of CPU, output."""
    shutil.rmtree(cache, ignore_errors=True)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                          env=dict(os.environ, XDG_CACHE_HOME=str(cache)))
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done.stdout


def measure(folder, name, port, options):
    url, cache = f"http://127.0.0.1:{port}/data", folder / "cache"
    shards = sorted((folder / "data").glob("*.mdb"))
    size = sum(shard.stat().st_size for shard in shards)
    steps = options.images * 7 // 10 // BATCH
    replay = [MILLRACE, "replay", "--global-batch", str(BATCH), "--threads", "8"]
    ranges = ["--local", str(cache / "none"), "--local-size", "1"]
    good = timed([*replay, str(folder / "data")], cache)[2]
    part = sum(shard.stat().st_size for shard in shards if shard.name.startswith("train"))
    works = {
        "first batch": ([*replay, "--batches", "0:1", url], 0, 0),
        "records by range": ([*replay, *ranges, url], steps * BATCH, part),
        "whole shards (verify --no-sha256)": ([MILLRACE, "verify", "--quiet", "--no-sha256", url], 0, size),
        "whole shards (pull)": (["sh", "-c", f"rm -rf {cache}.out && {MILLRACE} pull --quiet {url} {cache}.out"], 0, size),
        "the same files by curl, 8 at once": (
            ["sh", "-c", f"rm -rf {cache}.out && mkdir {cache}.out && exec curl -s -Z --parallel-max 8 "
             + " ".join(f"-o {cache}.out/{file.name} {url}/{file.name}" for file in sorted((folder / "data").iterdir()))],
            0, size),
    }
    results = {work: [] for work in works}
    for _ in range(options.rounds):
        for work, (command, _, _) in works.items():
            wall, cpu, output = timed(command, cache)
            results[work].append((wall, cpu))
            if command[1] == "replay" and not good.startswith(output):
                sys.exit(f"remote.py: {work}: other bytes than those of the local dataset")
    for work, (_, records, size) in works.items():
        wall, cpu = (statistics.median(values) for values in zip(*results[work]))
        rate = f"{records / wall:8,.0f}/s" if records else f"{size / wall / 1e6:6,.0f} MB/s" if size else ""
        print(f"| {name} | {work} | {wall:.2f} s | {rate} | {f'{cpu / size * 1e9:.2f} s/GB' if size else ''} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delay", type=float, default=10, help="milliseconds, each way")
    parser.add_argument("--proxy", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.proxy:
        return asyncio.run(proxy(*options.proxy, options.delay / 1000))
    with workplace() as (folder, started):
        subprocess.run([MILLRACE, "sample", folder / "source", "--layout", "imagenette", "--images", str(options.images),
                        "--size", "420:700", "-q"], check=True)
        subprocess.run([MILLRACE, "ingest", folder / "source", folder / "data", "--shard-size", "64M", "-q"], check=True)
        port, slow = free_port(), free_port()
        started.append(start_nginx(folder, port))
        started.append(subprocess.Popen([sys.executable, __file__, "--delay", str(options.delay), "--proxy", str(slow), str(port)],
                                        stderr=subprocess.DEVNULL))  # clients that leave are not worth a line
        time.sleep(1)
        print("| server | work | wall | rate | CPU |\n| --- | --- | --- | --- | --- |")
        measure(folder, "no delay", port, options)
        measure(folder, f"{2 * options.delay:g} ms", slow, options)
    return None


if __name__ == "__main__":
    main()
