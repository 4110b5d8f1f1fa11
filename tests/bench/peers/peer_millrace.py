"""millrace's own Python package, whose tensors share the loader's memory; the dataset is ingested from the same files."""
import os
import sys

import stream

sys.path.insert(0, os.environ["MILLRACE_PACKAGE"])


def write(job):
    import millrace

    millrace.ingest(job.source, to=os.path.join(job.folder, "dataset"))


def batches(job):
    import millrace
    import torch

    torch.set_num_threads(1)
    output = "float32" if job.decode else "encoded"
    view = millrace.Crop(stream.SIZE)
    augment = millrace.Augment(*stream.JITTER) if job.augment else None
    dataset = millrace.Dataset(os.path.join(job.folder, "dataset"))
    loader = dataset.loader("train", stream.BATCH, shuffle=True, threads=job.threads, output=output, view=view, augment=augment,
                            mean=stream.MEAN, std=stream.STD, array="torch", prefetch=stream.AHEAD)
    while True:
        for images, labels in loader:
            yield labels, images


if __name__ == "__main__":
    stream.main(write, batches, "torch", augments=True)
