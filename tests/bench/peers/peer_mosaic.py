"""mosaicml-streaming: MDS shards in a local folder, decoding by torchvision, one long epoch of repeated samples."""
import stream
import torch_parts


def write(job):
    from streaming import MDSWriter

    with MDSWriter(out=job.folder, columns={"image": "bytes", "label": "int"}, size_limit=stream.SHARD) as out:
        for path, label in job.files():
            out.write({"image": stream.content(path), "label": label})


def batches(job):
    from streaming import StreamingDataLoader, StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    clean_stale_shared_memory()         # a run that was ended leaves it behind, and the next one then refuses to start
    image = torch_parts.pixels(job.threads) if job.decode else bytes

    class Records(StreamingDataset):
        def __getitem__(self, index):
            sample = super().__getitem__(index)
            return sample["label"], image(sample["image"])

    records = Records(local=job.folder, shuffle=True, batch_size=stream.BATCH, epoch_size=20 * len(job.files()))
    return torch_parts.again(StreamingDataLoader(records, **torch_parts.options(job)))


if __name__ == "__main__":
    stream.main(write, batches, "mosaicml-streaming", "torchvision")
