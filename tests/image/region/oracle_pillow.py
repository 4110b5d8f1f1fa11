#!/usr/bin/env python3
"""Compares pixels with Pillow's, byte for byte: whole decodes, regions, EXIF orientation, resizes.

    oracle_pillow.py PIXELS_DUMP [FOLDER...]      exit status 77 (skipped) where python has no Pillow 11

Files are made here (every mode that Pillow writes), and taken from $MILLRACE_DATA/images or the folders given.
A file that only one of the two decodes is counted, not compared: millrace refuses what Pillow repairs silently.
"""
import os
import random
import subprocess
import sys
import tempfile

try:
    import PIL
    from PIL import Image, ImageOps
except ImportError:
    print("skipped: python has no Pillow")
    sys.exit(77)
if PIL.__version__.split(".")[0] != "11":
    print("skipped: Pillow %s; its arithmetic is compared as version 11 has it" % PIL.__version__)
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.environ.get("MILLRACE_DATA", os.path.join(HERE, *[".."] * 4, "shared", "data"))
NONE = (0,) * 6


def noise(rng, mode, size):
    channels = {"1": 1, "L": 1, "P": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    colours = "RGBA" if channels == 4 else "RGB"
    small = Image.frombytes(colours, (9, 7), rng.randbytes(9 * 7 * len(colours)))
    image = small.resize(size, Image.BICUBIC)
    if mode == "CMYK":
        return Image.frombytes("CMYK", size, image.tobytes())
    if mode == "P":
        return image.convert("RGB").quantize(23)
    return image.convert(mode)


def make_files(folder, rng):
    for i, size in enumerate([(67, 45), (16, 16), (1, 1), (130, 3), (2, 90)]):
        name = lambda kind, suffix: os.path.join(folder, "%s%d.%s" % (kind, i, suffix))
        for mode in ("1", "L", "P", "LA", "RGB", "RGBA"):
            noise(rng, mode, size).save(name(mode, "png"))
            if mode not in ("1", "P"):
                noise(rng, mode, size).save(name(mode, "webp"), lossless=i % 2 == 0, quality=70)
        for bits in (1, 2, 4):
            noise(rng, "RGB", size).quantize(2 ** bits).save(name("P%d-" % bits, "png"), bits=bits)
        Image.frombytes("I;16", size, rng.randbytes(2 * size[0] * size[1])).save(name("I16-", "png"))
        for mode in ("L", "RGB", "CMYK"):
            for progressive in (False, True):
                for sampling in (0, 1, 2):
                    kind = "%s-%d%d-" % (mode, progressive, sampling)
                    exif = Image.Exif()
                    exif[0x112] = 1 + (i + sampling) % 8
                    noise(rng, mode, size).save(name(kind, "jpg"), progressive=progressive, subsampling=sampling,
                                                quality=60 + 10 * sampling, exif=exif)
            if mode == "CMYK":      # the same without the Adobe marker, and with one that says YCCK
                data = open(name(kind, "jpg"), "rb").read()
                at = data.index(b"\xff\xee\x00\x0eAdobe")
                open(name("CMYK-bare", "jpg"), "wb").write(data[:at] + data[at + 16:])
                open(name("YCCK-", "jpg"), "wb").write(data[:at + 15] + b"\2" + data[at + 16:])
        frames = [noise(rng, "RGBA", size) for _ in range(3)]
        frames[0].save(name("animated", "webp"), save_all=True, append_images=frames[1:])
        frames[0].save(name("animated", "png"), save_all=True, append_images=frames[1:])


def open_rgb(path, turn):
    try:
        image = Image.open(path)
        if image.format not in ("JPEG", "MPO", "PNG", "WEBP"):
            return None
        if turn:
            image = ImageOps.exif_transpose(image)
        return image.convert("RGB")
    except Exception:
        return None


def jobs_of(rng, size):
    width, height = size
    region = lambda: (lambda w, h: (rng.randint(0, width - w), rng.randint(0, height - h), w, h))(
        rng.randint(1, width), rng.randint(1, height))
    yield (0, 0, 0, 0) + NONE, 0
    yield (0, 0, 0, 0) + NONE, 1
    for _ in range(4):
        yield region() + NONE, 0
    for _ in range(4):
        r = region()
        out = (rng.choice([r[2], rng.randint(1, 90)]), rng.choice([r[3], rng.randint(1, 90)]))
        kept = (rng.randint(1, out[0]), rng.randint(1, out[1]))
        yield r + out + (rng.randint(0, out[0] - kept[0]), rng.randint(0, out[1] - kept[1])) + kept, 0


def expected(image, job, flip, bicubic):
    left, top, width, height, ow, oh, cl, ct, cw, ch = job
    if width:
        image = image.crop((left, top, left + width, top + height))
    if ow:
        image = image.resize((ow, oh), Image.BICUBIC if bicubic else Image.BILINEAR)
        image = image.crop((cl, ct, cl + cw, ct + ch))
        if flip:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
    return image


def read_answer(stream):
    words = stream.readline().split()
    if words[0] == b"bad":
        return b" ".join(words[1:]).decode(), None
    size = int(words[1]), int(words[2])
    return size, stream.read(size[0] * size[1] * 3)


def main(dump, folders):
    rng = random.Random(4)
    compared, differing, only_theirs, only_ours, neither = 0, [], [], [], 0
    Image.MAX_IMAGE_PIXELS = 178956970 // 2
    with tempfile.TemporaryDirectory() as work:
        make_files(work, rng)
        paths = [os.path.join(d, f) for top in [work] + folders for d, _, files in os.walk(top) for f in sorted(files)]
        tool = subprocess.Popen([dump], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for path in paths:
            stored = open_rgb(path, False)
            for job, turn in jobs_of(rng, stored.size if stored else (1, 1)):
                if turn and stored and stored.size[0] * stored.size[1] > 4000000:
                    continue
                flip, bicubic = rng.randint(0, 1), rng.randint(0, 1)
                tool.stdin.write(("%s %d %d %d %s\n" % (" ".join(map(str, job)), flip, bicubic, turn, path)).encode())
                tool.stdin.flush()
                said, pixels = read_answer(tool.stdout)
                if stored is None or pixels is None:
                    if job[2] == 0 and not turn:
                        if stored:
                            only_theirs.append("%s: %s" % (os.path.basename(path), said))
                        elif pixels:
                            only_ours.append(os.path.basename(path))
                        else:
                            neither += 1
                    continue
                want = expected(open_rgb(path, True) if turn else stored, job, flip, bicubic)
                compared += 1
                if want.size != said or want.tobytes() != pixels:
                    differing.append("%s %s turn %d flip %d bicubic %d" % (path, job, turn, flip, bicubic))
        tool.stdin.close()
        tool.wait()
    print("%d results over %d files compared, %d differ" % (compared, len(paths), len(differing)))
    print("decoded by neither: %d; by Pillow only: %d; by millrace only: %d" %
          (neither, len(only_theirs), len(only_ours)))
    for line in only_theirs + only_ours:
        print("   ", line)
    for line in differing[:40]:
        print("differs:", line)
    assert compared > 500 and not differing


if __name__ == "__main__":
    images = os.path.join(DATA, "images")
    main(sys.argv[1], sys.argv[2:] or ([images] if os.path.isdir(images) else []))
