#!/usr/bin/env python3
"""The hub's side of test_pairs_hub.c; exit status 77 (skipped) where python does not have what a mode needs.

    bridgetower_hub.py embed CHECKPOINT INPUT OURS  transformers' model from the folder CHECKPOINT, given pixels, tokens and
                                                    seen of INPUT (.npz); prints the largest difference of its embeddings
                                                    from those of OURS (.npz), and what the folder lacks or has too much
    bridgetower_hub.py shard CHECKPOINT FOLDER      the weights in two files with an index, as the hub keeps large ones
"""
import json
import os
import sys


def embed(checkpoint, given, ours):
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    try:
        import numpy
        import torch
        from transformers import BridgeTowerForContrastiveLearning
    except ImportError as missing:
        print("skipped:", missing)
        sys.exit(77)
    torch.set_num_threads(1)
    model, facts = BridgeTowerForContrastiveLearning.from_pretrained(checkpoint, output_loading_info=True)
    given, ours = numpy.load(given), numpy.load(ours)
    with torch.no_grad():
        logits = model.eval()(input_ids=torch.from_numpy(given["tokens"]), attention_mask=torch.from_numpy(given["seen"]),
                              pixel_values=torch.from_numpy(given["pixels"])).logits.numpy()
    worst = max(numpy.abs(logits[:, k] - ours[name]).max() for k, name in enumerate(("text", "image", "both")))
    missing = [key for key in facts["missing_keys"] if not key.startswith("bridgetower.text_model.pooler.")]
    print(json.dumps({"worst": float(worst), "rows": len(logits), "missing": missing,
                      "unexpected": list(facts["unexpected_keys"])}))


def shard(checkpoint, folder):
    try:
        from safetensors.numpy import load_file, save_file
    except ImportError as missing:
        print("skipped:", missing)
        sys.exit(77)
    tensors = load_file(os.path.join(checkpoint, "model.safetensors"))
    names = sorted(tensors)
    files = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    parts = [names[::2], names[1::2]]
    os.makedirs(folder, exist_ok=True)
    for file, part in zip(files, parts):
        save_file({name: tensors[name] for name in part}, os.path.join(folder, file), {"format": "pt"})
    index = {"metadata": {}, "weight_map": {name: file for file, part in zip(files, parts) for name in part}}
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as out:
        json.dump(index, out)


{"embed": embed, "shard": shard}[sys.argv[1]](*sys.argv[2:])
