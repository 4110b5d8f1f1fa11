"""What the peers on PyTorch share: one image's way to float32, and how its loader is asked for batches.

Invariant: one thread means no worker, for a worker would send every batch through a pipe; that is the faster way.
"""
import stream


def pixels(threads, augment=False):
    """A function from a JPEG file's bytes (or a uint8 tensor of them) to a float32 tensor of 3 x SIZE x SIZE."""
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms import v2

    torch.set_num_threads(1)            # a worker decodes one image at a time; more threads would only spin
    crop = v2.RandomResizedCrop(stream.SIZE, scale=(0.08, 1.0), antialias=True)
    jitter = [v2.ColorJitter(*stream.JITTER)] if augment else []
    change = v2.Compose([crop, v2.RandomHorizontalFlip(), *jitter, v2.ToDtype(torch.float32, scale=True),
                         v2.Normalize(stream.MEAN, stream.STD)])

    def to_pixels(jpeg):
        if not isinstance(jpeg, torch.Tensor):
            jpeg = torch.frombuffer(bytearray(jpeg), dtype=torch.uint8)
        return change(decode_jpeg(jpeg, mode=ImageReadMode.RGB))

    return to_pixels


def apart(samples):
    """A batch of encoded files: (labels, images), as they are."""
    labels, images = zip(*samples)
    return list(labels), list(images)


def options(job):
    """Arguments of torch's DataLoader and of its kin."""
    workers = {"num_workers": job.threads, "prefetch_factor": stream.AHEAD, "persistent_workers": True}
    chosen = {"batch_size": stream.BATCH, **(workers if job.threads > 1 else {"num_workers": 0})}
    return chosen if job.decode else {**chosen, "collate_fn": apart}


def again(loader):
    while True:
        yield from loader
