"""DALI on the CPU alone: its WebDataset reader, its decoder that crops, its antialiased resize.

It hashes nothing and reads through a map of the tars.
"""
import stream


def batches(job):
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=stream.BATCH, num_threads=job.threads, device_id=None, prefetch_queue_depth=stream.AHEAD)
    def pipeline():
        image, label = fn.readers.webdataset(paths=job.in_folder(".tar"), ext=["jpg", "cls"], random_shuffle=True,
                                             initial_fill=1024, missing_component_behavior="error")
        if job.decode:
            image = fn.decoders.image_random_crop(image, device="cpu", output_type=types.RGB, random_area=[0.08, 1.0],
                                                  random_aspect_ratio=[3 / 4, 4 / 3], num_attempts=10)
            image = fn.resize(image, size=[stream.SIZE, stream.SIZE])
            if job.augment:
                light, contrast, colour, hue = stream.JITTER
                image = fn.color_twist(image, brightness=fn.random.uniform(range=[1 - light, 1 + light]),
                                       contrast=fn.random.uniform(range=[1 - contrast, 1 + contrast]),
                                       saturation=fn.random.uniform(range=[1 - colour, 1 + colour]),
                                       hue=fn.random.uniform(range=[-360 * hue, 360 * hue]))
            mean, std = ([255 * part for part in parts] for parts in (stream.MEAN, stream.STD))
            image = fn.crop_mirror_normalize(image, dtype=types.FLOAT, output_layout="CHW", mean=mean, std=std,
                                             mirror=fn.random.coin_flip())
        return label, image

    built = pipeline()
    built.build()
    while True:
        yield built.run()


if __name__ == "__main__":
    stream.main(stream.write_tars, batches, "nvidia-dali-cuda130", augments=True)
