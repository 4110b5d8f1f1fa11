#!/usr/bin/env python3
"""A training step of BridgeTower beside that of transformers on PyTorch; same weights, batch and threads, one run.

    scripts/bench/train-peer [--venvs FOLDER] bridgetower [--rounds 7] [--threads 2] [--dropout 0.1] [--forward] [--passive]

makes the virtual environment, then runs this. A step is forward, backward, clipping and AdamW's update; with --forward
it is a forward pass that keeps nothing for a backward pass. Both programs stay in memory and take turns, one step each; who
waits sleeps. A ratio is the peer's seconds over the mean of the two millrace steps around it; medians over the rounds.

The peer is transformers' BridgeTowerForContrastiveLearning in eager float32 with the attention that it chooses itself,
and the fused AdamW. Millrace runs its product's own model, device and optimizer (tests/bench/train_bench.c). Both read
the same config.json and model.safetensors, made here by chance, and make the same batch; without dropout their losses
are the same, which is looked at. The most memory that was resident is told as it is, and less what was there before the
model (of the peer: interpreter and libraries). Variables that choose kernels or threads (OPENBLAS_*, OMP_*, MKL_*) are
taken out of both programs' environment. The peer's threads spin while they wait for one another, which on a machine
that others keep busy costs it much: --passive has them sleep, as ours do, and then CPU time is what was computed.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from vit_torch import BENCH, Program, ratios

SIZES = {"hidden": 512, "heads": 8, "mlp": 2048, "layers": 8, "cross-layers": 3, "image": 224, "patch": 16,
         "vocab": 50265, "positions": 514, "embed": 256}
BEGIN, PAD, END, WORDS, FIRST_PLACE = 0, 1, 2, 4, 2       # as in train_bench.c


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def config_of(options):
    """The hub's config.json, as text."""
    size = {name.replace("-", "_"): getattr(options, name.replace("-", "_")) for name in SIZES}
    top = {"model_type": "bridgetower", "architectures": ["BridgeTowerForContrastiveLearning"],
           "contrastive_hidden_size": size["embed"], "hidden_act": "gelu", "hidden_size": size["hidden"],
           "layer_norm_eps": 1e-5, "logit_scale_init_value": 2.6592, "num_attention_heads": size["heads"],
           "num_hidden_layers": size["cross_layers"], "share_cross_modal_transformer_layers": True,
           "share_link_tower_layers": False, "torch_dtype": "float32"}
    text = {"vocab_size": size["vocab"], "hidden_size": size["hidden"], "num_hidden_layers": size["layers"],
            "num_attention_heads": size["heads"], "intermediate_size": size["mlp"], "layer_norm_eps": 1e-5,
            "max_position_embeddings": size["positions"], "hidden_dropout_prob": options.dropout,
            "attention_probs_dropout_prob": options.dropout, "hidden_act": "gelu", "bos_token_id": BEGIN,
            "pad_token_id": PAD, "eos_token_id": END, "type_vocab_size": 1}
    vision = {"hidden_size": size["hidden"], "num_hidden_layers": size["layers"], "num_channels": 3,
              "patch_size": size["patch"], "image_size": size["image"], "layer_norm_eps": 1e-5,
              "share_layernorm": True}
    return json.dumps(dict(top, text_config=text, vision_config=vision), indent=1)


def be_maker(options):
    """Writes config.json and random weights; a process of its own, as it needs memory of its own."""
    import torch
    from safetensors.torch import save_file
    from transformers import BridgeTowerConfig, BridgeTowerForContrastiveLearning
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    with open(os.path.join(options.folder, "config.json"), "w", encoding="utf-8") as f:
        f.write(config_of(options))
    model = BridgeTowerForContrastiveLearning(BridgeTowerConfig.from_pretrained(options.folder))
    save_file(model.state_dict(), os.path.join(options.folder, "model.safetensors"), metadata={"format": "pt"})
    return 0


def load(model, path):
    """Tensor by tensor, so that loading needs less memory than a step."""
    import torch
    from safetensors import safe_open
    with torch.no_grad(), safe_open(path, framework="pt") as weights:
        for name, value in model.state_dict().items():
            value.copy_(weights.get_tensor(name))


def batch_of(torch, options):
    """As train_bench.c makes it."""
    def scattered(count):
        return torch.arange(count, dtype=torch.int64) * 2654435761 & 0xffffffff
    count, length = options.batch, options.tokens
    shape = (count, 3, options.image, options.image)
    images = (scattered(count * 3 * options.image * options.image) >> 8).float().div_(1 << 23).sub_(1).view(shape)
    words = (WORDS + (scattered(count * length) >> 4) % (options.vocab - WORDS)).view(count, length)
    tokens = length - torch.arange(count) % 8
    seen = torch.arange(length)[None] < tokens[:, None]
    words[:, 0] = BEGIN
    words[torch.arange(count), tokens - 1] = END
    return {"input_ids": torch.where(seen, words, PAD), "attention_mask": seen.long(), "pixel_values": images}


def be_torch(options):
    """The peer's process: answers as train_bench does."""
    import torch
    import transformers
    from transformers import BridgeTowerConfig, BridgeTowerForContrastiveLearning
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    start = peak_bytes()
    model = BridgeTowerForContrastiveLearning(BridgeTowerConfig.from_pretrained(options.folder))
    load(model, os.path.join(options.folder, "model.safetensors"))
    model.train(not options.forward)
    batch = batch_of(torch, options)
    parts = [[p for p in model.parameters() if (p.ndim > 1) == decays] for decays in (True, False)]
    adamw = torch.optim.AdamW([{"params": parts[0], "weight_decay": 0.01}, {"params": parts[1], "weight_decay": 0}],
                              lr=1e-5, fused=True)
    print(json.dumps({"device": f"transformers {transformers.__version__}, PyTorch {torch.__version__}, "
                                f"{torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}",
                      "bytes": start}), flush=True)

    def learn():
        adamw.zero_grad(set_to_none=True)
        loss = model(**batch, return_loss=True).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        return loss

    def look():
        with torch.inference_mode():
            return model(**batch, return_loss=True).loss

    for line in sys.stdin:
        seconds, cpu = [], time.process_time()
        for _ in range(int(line)):
            begin = time.monotonic()
            loss = look().item() if options.forward else learn().item()
            seconds.append(time.monotonic() - begin)
        print(json.dumps({"seconds": seconds, "cpu_seconds": time.process_time() - cpu, "loss": loss,
                          "peak_bytes": peak_bytes()}), flush=True)
    return 0


class Peer(Program):
    """Keeps the last thing that was said, and all losses."""

    def __init__(self, argv, env):
        self.said, self.losses = {}, []
        super().__init__(argv, env)

    def answer(self):
        said = super().answer()
        self.said.update(said)
        self.losses += [said["loss"]] if "loss" in said else []
        return said

    def figures(self):
        said = self.said
        return {"device": self.device, "seconds": statistics.median(self.wall),
                "cpu_seconds": statistics.median(self.cpu), "peak_bytes": said["peak_bytes"],
                "model_bytes": said["peak_bytes"] - said["bytes"], "losses": self.losses,
                "all_seconds": self.wall, "all_cpu_seconds": self.cpu,
                **{name: said[name] for name in ("parameters", "activation_bytes") if name in said}}


def take_turns(options, folder, env):
    same = ["--batch", str(options.batch), "--tokens", str(options.tokens), "--threads", str(options.threads)]
    same += ["--forward"] if options.forward else []
    peer = [sys.executable, os.path.abspath(__file__), "--folder", folder] + same
    for name in SIZES:
        peer += ["--" + name, str(getattr(options, name.replace("-", "_")))]
    peer += ["--dropout", str(options.dropout)]
    subprocess.run(peer + ["--role", "maker"], env=env, check=True)
    programs = [Peer([BENCH] + same + ["--text", str(options.text), "--config", os.path.join(folder, "config.json"),
                                       "--weights", os.path.join(folder, "model.safetensors")], env),
                Peer(peer + ["--role", "torch"], dict(env, OMP_WAIT_POLICY="PASSIVE") if options.passive else env)]
    ours, theirs = programs
    for program in programs * options.warmup:
        program.step(counts=False)
    ours.step()
    for _ in range(options.rounds):
        theirs.step()
        ours.step()
    for program in programs:
        program.close()
    return ours, theirs


def compare(options):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OPENBLAS_", "OMP_", "MKL_", "GOMP_", "KMP_"))}
    env["HF_HUB_OFFLINE"] = env["TRANSFORMERS_OFFLINE"] = "1"
    load_before = os.getloadavg()[0]        # before this adds to it
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = take_turns(options, folder, env)
    result = {"load_before": load_before, "millrace": ours.figures(), "pytorch": theirs.figures()}
    for name in ("batch", "tokens", "threads", "dropout", "forward", "passive", "rounds"):
        result[name] = getattr(options, name)
    for name, a, b in (("ratio", ours.wall, theirs.wall), ("cpu_ratio", ours.cpu, theirs.cpu)):
        values = ratios(a, b)
        result[name], result[name + "_range"] = statistics.median(values), [min(values), max(values)]
    for name in ("peak_bytes", "model_bytes"):
        result[name + "_ratio"] = result["millrace"][name] / result["pytorch"][name]
    if options.dropout == 0 or options.forward:
        result["loss_difference"] = max(abs(a - b) for a, b in zip(ours.losses, theirs.losses))
    return result


def show(result):
    mib = 1 << 20
    for name in ("millrace", "pytorch"):
        r = result[name]
        memory = f"{r['peak_bytes'] / mib:7.0f} MiB, {r['model_bytes'] / mib:7.0f} without what was there before"
        print(f"{name:9} {r['seconds']:8.3f} s a step, {r['cpu_seconds']:8.3f} CPU s, {memory}   {r['device']}")
    if result["load_before"] > 0.5:
        print(f"others kept this machine busy (load {result['load_before']:.1f}): look at the ratios, not the seconds")
    for name, what in (("ratio", "wall time"), ("cpu_ratio", "CPU time")):
        low, high = result[name + "_range"]
        rounds = f"({low:.2f} to {high:.2f} over {result['rounds']} rounds)"
        print(f"millrace is {result[name]:.2f} x transformers by {what} {rounds}")
    print(f"millrace takes {result['peak_bytes_ratio']:.2f} x the memory of transformers, "
          f"{result['model_bytes_ratio']:.2f} x without what was there before")
    if "loss_difference" in result:
        print(f"losses of the same steps differ by {result['loss_difference']:.1e} at most")


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in SIZES.items():
        parser.add_argument("--" + name, type=int, default=usual)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--text", type=int, default=64, help="tokens that millrace plans for")
    parser.add_argument("--tokens", type=int, default=40, help="of the longest text; others have up to 7 fewer")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--dropout", type=float, default=0.0, help="of text and cross layers, and of attention")
    parser.add_argument("--forward", action="store_true", help="the forward pass alone")
    parser.add_argument("--passive", action="store_true", help="the peer's threads sleep while they wait")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--json", help="all figures")
    parser.add_argument("--role", choices=("maker", "torch"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = read_options()
    if options.role:
        return be_maker(options) if options.role == "maker" else be_torch(options)
    result = compare(options)
    show(result)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)
            f.write("\n")
    if result.get("loss_difference", 0) > 1e-3:
        sys.exit("bridgetower_torch: the losses are not those of one model: these figures compare nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
