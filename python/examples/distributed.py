"""torchrun --nproc-per-node 2 distributed.py DATASET - data-parallel training with torch's DistributedDataParallel.

Nothing about ranks is passed to millrace: the loader asks torch.distributed. Every rank has the same number of steps, and
with tail="pad" the samples that fill up the last one have weight 0.
"""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

import millrace


def main(path: str) -> None:
    dist.init_process_group("gloo")
    dataset = millrace.Dataset(path)
    fields = ("image", "label", "weight", "sample")
    loader = dataset.loader("train", 8, shuffle=True, view=millrace.Crop(32), fields=fields, threads=1)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, len(dataset.classes)))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    seen = []
    for _ in range(2):
        for images, labels, weights, samples in loader:
            losses = F.cross_entropy(model(images), labels, reduction="none")
            optimizer.zero_grad()
            ((losses * weights).sum() / weights.sum().clamp(min=1)).backward()
            optimizer.step()
            seen += samples[weights > 0].tolist()
    print(f"rank {loader.rank} of {loader.world}: {len(loader)} steps per epoch, {len(seen)} samples", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
