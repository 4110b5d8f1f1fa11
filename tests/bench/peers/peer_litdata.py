"""litdata: its own chunks in a local folder, decoding by torchvision."""
import stream
import torch_parts


def record(file):
    return {"image": stream.content(file[0]), "label": file[1]}


def write(job):
    import litdata

    litdata.optimize(fn=record, inputs=job.files(), output_dir=job.folder, chunk_bytes=stream.SHARD, num_workers=1,
                     mode="overwrite", verbose=False)


def batches(job):
    import litdata

    # bytes(): it lends views, which cannot be sent from a worker
    image = torch_parts.pixels(job.threads) if job.decode else bytes

    class Records(litdata.StreamingDataset):
        def __getitem__(self, index):
            sample = super().__getitem__(index)
            return sample["label"], image(sample["image"])

    options = torch_parts.options(job)
    options.pop("persistent_workers", None)
    return torch_parts.again(litdata.StreamingDataLoader(Records(job.folder, shuffle=True), **options))


if __name__ == "__main__":
    stream.main(write, batches, "litdata", "torchvision")
