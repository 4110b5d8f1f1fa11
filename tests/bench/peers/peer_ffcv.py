"""FFCV: one file for pixels and one for bytes, compiled pipelines, one long epoch of repeated samples.

Its own writer encodes every JPEG again, which would be other files; `Kept` stores them as they are, and FFCV's decoder
reads them as its own. It decodes with the fast inverse DCT, and its bytes come padded to the largest, without lengths. Of
the changes of colours it has all but that of hue.
"""
import os

import stream


def kept_field():
    from ffcv.fields import RGBImageField
    from ffcv.fields.rgb_image import IMAGE_MODES

    class Kept(RGBImageField):
        def encode(self, destination, image, malloc):
            size, jpeg = image
            destination["mode"] = IMAGE_MODES["jpg"]
            destination["width"], destination["height"] = size
            destination["data_ptr"], place = malloc(jpeg.size)
            place[:] = jpeg

    return Kept


def beton(job, decoded):
    return os.path.join(job.folder, "pixels.beton" if decoded else "bytes.beton")


def jitter():
    from ffcv.transforms import RandomBrightness, RandomContrast, RandomSaturation

    brightness, contrast, saturation, _ = stream.JITTER
    return [RandomBrightness(brightness, 1.0), RandomContrast(contrast, 1.0), RandomSaturation(saturation, 1.0)]


def write(job):
    import numpy
    from ffcv.fields import BytesField, IntField
    from ffcv.writer import DatasetWriter
    from PIL import Image

    class Files:
        def __init__(self, with_size):
            self.files, self.with_size = job.files(), with_size

        def __len__(self):
            return len(self.files)

        def __getitem__(self, i):
            path, label = self.files[i]
            jpeg = numpy.frombuffer(stream.content(path), dtype=numpy.uint8)
            return ((Image.open(path).size, jpeg) if self.with_size else jpeg), label

    for decoded, field in ((True, kept_field()()), (False, BytesField())):
        out = DatasetWriter(beton(job, decoded), {"image": field, "label": IntField()}, num_workers=1)
        out.from_indexed_dataset(Files(decoded))


def batches(job):
    import numpy
    import torch
    from ffcv.fields.decoders import BytesDecoder, IntDecoder, RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, Squeeze, ToTensor, ToTorchImage

    torch.set_num_threads(1)
    label = [IntDecoder(), ToTensor(), Squeeze()]
    image = [BytesDecoder()]
    if job.decode:
        mean, std = (255 * numpy.array(v) for v in (stream.MEAN, stream.STD))
        crop = RandomResizedCropRGBImageDecoder((stream.SIZE, stream.SIZE), scale=(0.08, 1.0))
        colours = jitter() if job.augment else []
        image = [crop, RandomHorizontalFlip(), *colours, NormalizeImage(mean, std, numpy.float32), ToTensor(), ToTorchImage()]
    loader = Loader(beton(job, job.decode), batch_size=stream.BATCH, num_workers=job.threads,
                    os_cache=True, order=OrderOption.RANDOM, batches_ahead=stream.AHEAD,
                    indices=numpy.tile(numpy.arange(len(job.files())), 100), pipelines={"image": image, "label": label},
                    custom_fields={"image": kept_field()} if job.decode else {})
    while True:
        for images, labels in loader:
            yield labels, images


if __name__ == "__main__":
    stream.main(write, batches, "ffcv", "numpy", augments=True)
