"""tf.data: TFRecords, shards interleaved, a buffer to shuffle, a private pool of threads, crop decoded alone.

Its resize has no antialiasing and its decoder takes the fast inverse DCT: less work than asked of the others.
"""
import os

import stream


def write(job):
    import tensorflow as tf

    def example(path, label):
        features = {"image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[stream.content(path)])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))}
        return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()

    files = sorted(job.files(), key=lambda f: os.path.basename(f[0]))
    each = max(1, len(files) // 16)
    for first in range(0, len(files), each):
        with tf.io.TFRecordWriter(os.path.join(job.folder, "%06d.tfrecord" % first)) as out:
            for path, label in files[first:first + each]:
                out.write(example(path, label))


def batches(job):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    tf.config.threading.set_inter_op_parallelism_threads(job.threads)
    mean = tf.constant([255 * m for m in stream.MEAN])
    scale = tf.constant([1 / (255 * s) for s in stream.STD])
    fields = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

    def pixels(record):
        sample = tf.io.parse_single_example(record, fields)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(sample["image"]), bounding_boxes=tf.zeros([1, 0, 4]), area_range=(0.08, 1.0),
            aspect_ratio_range=(3 / 4, 4 / 3), max_attempts=10, use_image_if_no_bounding_boxes=True)
        window = tf.concat([begin[:2], size[:2]], axis=0)
        image = tf.image.decode_and_crop_jpeg(sample["image"], window, channels=3)
        image = tf.image.random_flip_left_right(tf.image.resize(image, (stream.SIZE, stream.SIZE)))
        return sample["label"], (image - mean) * scale

    def encoded(records):
        samples = tf.io.parse_example(records, fields)
        return samples["label"], samples["image"]

    shards = job.in_folder(".tfrecord")
    data = tf.data.Dataset.from_tensor_slices(shards).shuffle(len(shards)).repeat()
    data = data.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=job.threads, deterministic=False)
    data = data.shuffle(1024)
    if job.decode:
        data = data.map(pixels, num_parallel_calls=job.threads, deterministic=False).batch(stream.BATCH)
    else:
        data = data.batch(stream.BATCH).map(encoded, num_parallel_calls=job.threads, deterministic=False)
    options = tf.data.Options()
    options.threading.private_threadpool_size = job.threads
    return iter(data.prefetch(stream.AHEAD).with_options(options))


if __name__ == "__main__":
    stream.main(write, batches, "tensorflow-cpu")
