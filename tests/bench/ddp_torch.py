#!/usr/bin/env python3
"""Training steps of a small Vision Transformer by PyTorch's DistributedDataParallel over gloo, for hosts_peer.sh.

Rank and world are those of Open MPI's launcher, MASTER_ADDR and MASTER_PORT say where rank 0 is. Rank 0 prints the median
seconds of a step; pictures are random, and made before the first step. The model is vit_torch.py's.
"""
import argparse
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import vit_torch  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("patch", "hidden", "layers", "heads", "mlp", "image", "classes", "batch", "steps"):
        parser.add_argument("--" + name, type=int, required=True)
    options = parser.parse_args()
    import torch
    from torch import distributed
    rank, world = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
    distributed.init_process_group("gloo", rank=rank, world_size=world)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    vit_torch.SHAPES["small"] = (options.patch, options.hidden, options.layers, options.heads, options.mlp)
    options.model, options.dropout = "small", 0.0
    model = torch.nn.parallel.DistributedDataParallel(vit_torch.make_model(torch, options))
    sgd = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
    images = torch.rand(options.batch, 3, options.image, options.image) * 2 - 1
    labels = torch.randint(0, options.classes, (options.batch,))
    seconds = []
    for _ in range(options.steps):
        begin = time.monotonic()
        sgd.zero_grad(set_to_none=False)
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        sgd.step()
        seconds.append(time.monotonic() - begin)
    if rank == 0:
        print(f"{statistics.median(seconds[2:]):.4f}", flush=True)     # the first build buckets
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
