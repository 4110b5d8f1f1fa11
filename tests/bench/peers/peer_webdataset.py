"""webdataset: tars, shards and then a buffer of samples shuffled, decoding by torchvision."""
import stream
import torch_parts


def batches(job):
    import torch
    import webdataset

    image = torch_parts.pixels(job.threads) if job.decode else bytes
    collate = torch.utils.data.default_collate if job.decode else torch_parts.apart
    data = webdataset.WebDataset(job.in_folder(".tar"), shardshuffle=100, resampled=False, empty_check=False)
    data = data.repeat().shuffle(1024).to_tuple("cls", "jpg").map_tuple(int, image)
    data = data.batched(stream.BATCH, collation_fn=collate, partial=False)
    workers = {"num_workers": job.threads, "prefetch_factor": stream.AHEAD} if job.threads > 1 else {"num_workers": 0}
    return webdataset.WebLoader(data, batch_size=None, **workers)


if __name__ == "__main__":
    stream.main(stream.write_tars, batches, "webdataset", "torchvision")
