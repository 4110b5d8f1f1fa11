#!/usr/bin/env python3
"""roofline.py - what devices could do at most with the models: estimates from counts and published peaks, unmeasured.

    roofline.py MILLRACE [BATCH]        a table in Markdown; BATCH: samples per device, 64

The counts are those of `millrace train --plan=json` (products only, 2 FLOPs per multiply-add) and of
`millrace bench --stage decode --decode-on device --json`, on drawn datasets.  A device takes at least the larger of
FLOPs / peak and bytes / bandwidth, where the bytes are the least that have to move: activations written once and read
once, parameters read by both passes, gradients, and AdamW's state read and written.  Nothing is added for launches,
softmax, norms or what a kernel reads twice, so a real device stays below.
"""
import json
import subprocess
import sys
import tempfile

# Name, peak of products in bf16 and float32 (dense, sums in float32), bytes per second; None: no unit for it.
# H100 SXM: NVIDIA H100 Tensor Core GPU datasheet.  RTX 4090: NVIDIA Ada GPU Architecture whitepaper, appendix A.
# Iris Xe G7: 96 units x 8 lanes x 2 x 1.3 GHz, 128 bits of LPDDR4x-4266 (Intel, specifications of the Core i7-1165G7).
DEVICES = [
    ("H100 SXM", 989.4e12, 66.9e12, 3.35e12),
    ("RTX 4090", 165.2e12, 82.6e12, 1.008e12),
    ("Iris Xe G7", None, 2.0e12, 68.3e9),
]
MODELS = [
    ("ViT-B/16, 224", ["--model", "ViT-B_16", "--image-size", "224"]),
    ("ViT-B/16, 160", ["--model", "ViT-B_16", "--image-size", "160"]),
    ("BridgeTower large", ["--model", "bridgetower-large"]),
]
ADAMW = 4 * 7  # bytes per parameter: w, g, m, v read, w, m, v written


def run(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def draw(millrace, folder, layout, *more):
    source, data = f"{folder}/{layout}", f"{folder}/{layout}.data"
    run(millrace, "sample", source, "--layout", layout, "--images", "64", "--size", "400:500", "--quiet", *more)
    run(millrace, "ingest", source, data, "--quiet")
    return data


def bound(plan, batch, precision, peak, bandwidth):
    """Samples per second, and what limits them."""
    wide = 2 if precision == "bf16" else 4
    flops = plan["training_flops_per_sample"] * batch / peak
    # Parameters are read by the forward pass and twice by the backward pass's two products, gradients written.
    moved = (2 * plan["activations"] + plan["parameters"] * (3 * wide + 4 + ADAMW)) / bandwidth
    return batch / max(flops, moved), "products" if flops > moved else "memory"


def main():
    millrace, batch = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 64
    with tempfile.TemporaryDirectory() as folder:
        labels = draw(millrace, folder, "imagenette")
        pairs = draw(millrace, folder, "newyorker", "--simple")
        tokenizer = f"{folder}/tokenizer.json"
        run(millrace, "tokenizer", pairs, "--text-column", "image_description", "--size", "300", "--output", tokenizer)
        columns = [(d, word, peak) for d in DEVICES for word, peak in (("bf16", d[1]), ("float32", d[2])) if peak]
        print(f"| batch {batch} | GFLOP a sample |", " | ".join(f"{d[0]}, {word}" for d, word, _ in columns), "|")
        print("| --- " * (2 + len(columns)) + "|")
        for name, words in MODELS:
            cells = []
            for device, precision, peak in columns:
                data = [pairs, "--tokenizer", tokenizer] if "bridgetower" in words[1] else [labels]
                plan = json.loads(run(millrace, "train", *data, *words, "--batch", str(batch), "--optimizer", "adamw",
                                      "--precision", precision, "--plan=json"))
                rate, limit = bound(plan, batch, precision, peak, device[3])
                cells.append(f"{rate:,.0f} ({limit})" if rate >= 10 else f"{rate:.1f} ({limit})")
            print(f"| {name} | {plan['training_flops_per_sample'] / 1e9:.1f} |", " | ".join(cells), "|")
        bench = json.loads(run(millrace, "bench", labels, "--stage", "decode", "--decode-on", "device",
                               "--threads", "1", "--seconds", "2", "--json"))
        moved = bench["on_device"]["work"]["moved_bytes"]
        print(f"\nDecoding drawn pictures of 400 to 500 pixels moves {moved / 1e6:.1f} MB each:",
              ", ".join(f"{d[0]} {d[3] / moved:,.0f} a second" for d in DEVICES))


if __name__ == "__main__":
    main()
