#!/usr/bin/env python3
"""What augmentations cost in the loader's threads, alternating with torchvision's for uint8 tensors, on the same images.

    scripts/bench/augment-bench [--images 600] [--rounds 5] [--side 224] [--json FILE]

- CPU microseconds per image of each augmentation: of an epoch with it less one without it, one thread; torchvision's in one thread
- wall time per image of map= in two threads, and of DataLoader with two workers: PIL and torchvision, and a function of Python alone
- of a whole recipe, from the file to a normalised float32 tensor: the loader's, and PIL's decoder with torchvision's transforms

Medians over the rounds, which go A B A B.
"""
import argparse
import io
import json
import statistics
import tempfile
import time

from photos import make_dataset


def cpu_of(work, count):
    before = time.process_time()
    work()
    return (time.process_time() - before) / count * 1e6


def recipes(millrace, v2):
    """By name: our augmentation, and torchvision's."""
    ours = millrace.Augment
    return {
        "colour jitter": (ours(0.4, 0.4, 0.4, 0.1), v2.ColorJitter(0.4, 0.4, 0.4, 0.1)),
        "grey": (ours(grey=1), v2.RandomGrayscale(1.0)),
        "blur": (ours(blur=1), v2.GaussianBlur(13, (0.1, 2.0))),
        "erasing": (ours(erase=1), v2.RandomErasing(1.0)),
        "RandAugment(2, 9)": (ours(randaugment=2), v2.RandAugment(2, 9)),
        "TrivialAugment": (ours(trivial=True), v2.TrivialAugmentWide()),
    }


def measure(path, rounds, side):
    import millrace
    import PIL.Image
    import torch
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    split = millrace.Dataset(path)["train"]
    common = {"shuffle": True, "threads": 0, "array": "torch", "view": millrace.Crop(side)}

    def epoch(output="uint8", augment=None):
        loader = millrace.Loader(split, 50, output=output, augment=augment, **common)
        return cpu_of(lambda: sum(len(images) for images, _ in loader), len(split))

    pictures = torch.cat([images for images, _ in millrace.Loader(split, 50, output="uint8", **common)][:4]).permute(0, 3, 1, 2)
    pictures = pictures.contiguous()
    result = {}
    for name, (ours, theirs) in recipes(millrace, v2).items():
        turns = [
            (epoch(augment=ours) - epoch(), cpu_of(lambda: [theirs(picture) for picture in pictures], len(pictures)))
            for _ in range(rounds)
        ]
        result[name] = turns
    chain = v2.Compose([v2.PILToTensor(), v2.RandomResizedCrop(side, antialias=True), v2.RandomHorizontalFlip(), v2.RandAugment(2, 9),
                        v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.5] * 3), v2.RandomErasing(0.25)])

    def by_torchvision():
        for sample in split:
            chain(PIL.Image.open(io.BytesIO(sample["image"])).convert("RGB"))

    whole = millrace.Augment(randaugment=2, erase=0.25)
    result["the whole recipe"] = [(epoch("float32", whole), cpu_of(by_torchvision, len(split))) for _ in range(rounds)]
    return {
        name: {
            "ours_us": statistics.median(a for a, _ in turns),
            "torchvision_us": statistics.median(b for _, b in turns),
            "ratio": statistics.median(a / b for a, b in turns),
        }
        for name, turns in result.items()
    }


def count_in_python(sample):
    return sum(range(20_000)) + len(sample["image"])


class ByPil:
    """PIL's decoder and torchvision's crop."""

    def __init__(self, side):
        from torchvision.transforms import v2

        self.change = v2.Compose([v2.PILToTensor(), v2.RandomResizedCrop(side, antialias=True)])

    def __call__(self, sample):
        import PIL.Image

        return self.change(PIL.Image.open(io.BytesIO(sample["image"])).convert("RGB"))


def measure_map(path, rounds, side):
    import millrace
    import torch

    split = millrace.Dataset(path)["train"]
    result = {}
    for name, function in (("map by PIL", ByPil(side)), ("map in Python", count_in_python)):
        changed, ratios = split.with_transform(function), []
        for _ in range(rounds):
            threads = millrace.Loader(changed, 50, array="torch", map_threads=2)
            workers = torch.utils.data.DataLoader(changed, 50, num_workers=2)
            times = []
            for batches in (threads, workers):
                before = time.monotonic()
                for _ in batches:
                    pass
                times.append((time.monotonic() - before) / len(split) * 1e6)
            ratios.append(times)
        result[name] = [statistics.median(column) for column in zip(*ratios)] + [statistics.median(a / b for a, b in ratios)]
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        dataset, kind = make_dataset(work, options.images)
        result = measure(dataset, options.rounds, options.side)
        maps = measure_map(dataset, options.rounds, options.side)
    print(f"{options.images} JPEGs ({kind}), {options.side} pixels, CPU per image, medians of {options.rounds} rounds")
    for name, row in result.items():
        print(f"{name:18} {row['ours_us']:6.0f} us, torchvision {row['torchvision_us']:6.0f} us: {row['ratio']:.2f}")
    for name, (threads, workers, ratio) in maps.items():
        print(f"{name:18} {threads:6.0f} us, DataLoader  {workers:6.0f} us: {ratio:.2f}  (wall time, two of each)")
    if options.json:
        with open(options.json, "w") as out:
            json.dump({**result, **maps}, out, indent=1)


if __name__ == "__main__":
    main()
