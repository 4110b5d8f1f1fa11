"""torch's DataLoader on the folder itself, with torchvision's decode_jpeg and its v2 transforms (PIL is slower)."""
import stream
import torch_parts


def write(_):
    """It reads the source."""


def batches(job):
    import torch
    from torchvision.io import read_file

    class Folder(torch.utils.data.Dataset):
        def __init__(self):
            self.files = job.files()
            self.to_pixels = torch_parts.pixels(job.threads, job.augment) if job.decode else None

        def __len__(self):
            return len(self.files)

        def __getitem__(self, i):
            path, label = self.files[i]
            return label, self.to_pixels(read_file(path)) if self.to_pixels else stream.content(path)

    class Endless(torch.utils.data.Sampler):
        def __iter__(self):
            while True:
                yield from torch.randperm(len(folder)).tolist()

    folder = Folder()
    return torch.utils.data.DataLoader(folder, sampler=Endless(), **torch_parts.options(job))


if __name__ == "__main__":
    stream.main(write, batches, "torchvision", "torch", augments=True)
