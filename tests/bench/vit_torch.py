#!/usr/bin/env python3
"""A training step of ViT-B/16 beside PyTorch's: forward, backward, clipping, SGD update; same threads, one run.

    scripts/bench/train-peer [--venvs FOLDER] [--rounds 7] [--json FILE]      makes the virtual environment, then runs this

Both programs stay in memory and take turns: millrace, PyTorch, millrace, PyTorch, ... one step each; who waits sleeps.
--compile: PyTorch's model through torch.compile.  --precision bf16: millrace's --precision and PyTorch's autocast.  --avx2:
neither uses more than AVX2, whatever the processor has.  --device cuda: both on a GPU.
A ratio is PyTorch's seconds over the mean of the two millrace steps around it; medians over the rounds. PyTorch runs
eagerly with what it has to be fast: one product for q, k and v, scaled_dot_product_attention, the fused SGD.
Millrace runs its product's own model, device and optimizer (tests/bench/train_bench.c). Variables that choose kernels
or threads (OPENBLAS_*, OMP_*, MKL_*) are taken out of both programs' environment.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

BENCH = os.environ.get("MILLRACE_TRAIN_BENCH", os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                            "../../build/release/train_bench"))
SHAPES = {"ViT-B_16": (16, 768, 12, 12, 3072), "ViT-B_32": (32, 768, 12, 12, 3072),
          "ViT-L_16": (16, 1024, 24, 16, 4096)}


def make_model(torch, options):
    """The same model: pre-norm blocks, exact GELU, eps 1e-6, dropout at three places, the class token's head."""
    from torch import nn
    from torch.nn import functional
    patch, width, layers, heads, mlp = SHAPES[options.model]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm0, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, mlp), nn.GELU(), nn.Dropout(options.dropout),
                                     nn.Linear(mlp, width), nn.Dropout(options.dropout))

        def forward(self, x):
            b, n, _ = x.shape
            q, k, v = self.qkv(self.norm0(x)).reshape(b, n, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            a = functional.scaled_dot_product_attention(q, k, v)
            x = x + self.out(a.transpose(1, 2).reshape(b, n, width))
            return x + self.mlp(self.norm2(x))

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, width, patch, patch)
            self.cls = nn.Parameter(torch.zeros(1, 1, width))
            self.positions = nn.Parameter(torch.randn(1, 1 + (options.image // patch) ** 2, width) * 0.02)
            self.drop = nn.Dropout(options.dropout)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, options.classes)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.positions
            return self.head(self.norm(self.blocks(self.drop(x)))[:, 0])

    return Transformer()


def be_torch(options):
    """The peer's process: answers as train_bench does."""
    import torch
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    on = options.device.split(":")[0]
    model = make_model(torch, options).to(options.device).train()
    run = torch.compile(model) if options.compile else model
    half = torch.autocast(on, dtype=torch.bfloat16, enabled=options.precision == "bf16")
    images = (torch.rand(options.batch, 3, options.image, options.image) * 2 - 1).to(options.device)
    labels = torch.randint(0, options.classes, (options.batch,)).to(options.device)
    sgd = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
    what = (torch.cuda.get_device_name(options.device) if on == "cuda" else
            f"{torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}")
    print(json.dumps({"device": f"PyTorch {torch.__version__}, {what}"
                                f"{', compiled' if options.compile else ''}, {options.precision}"}), flush=True)
    for line in sys.stdin:
        seconds, cpu = [], time.process_time()
        for _ in range(int(line)):
            begin = time.monotonic()
            sgd.zero_grad(set_to_none=True)
            with half:
                logits = run(images)
            loss = torch.nn.functional.cross_entropy(logits.float(), labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            sgd.step()
            loss.item()             # waits for a device
            seconds.append(time.monotonic() - begin)
        cpu = time.process_time() - cpu
        print(json.dumps({"seconds": seconds, "cpu_seconds": cpu, "loss": loss.item()}), flush=True)


class Program:
    def __init__(self, argv, env):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.device = self.answer()["device"]
        self.wall, self.cpu = [], []

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"vit_torch: {self.process.args[0]} ended with status {self.process.wait()}")
        return json.loads(line)

    def step(self, counts=True):
        self.process.stdin.write("1\n")
        self.process.stdin.flush()
        said = self.answer()
        if counts:
            self.wall.append(said["seconds"][0])
            self.cpu.append(said["cpu_seconds"])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def ratios(ours, theirs):
    """ours has one step more than theirs."""
    return [their / ((before + after) / 2) for before, their, after in zip(ours, theirs, ours[1:])]


def compare(options):
    shape = []
    for name in ("model", "image", "batch", "classes", "threads", "dropout", "precision", "device"):
        shape += ["--" + name, str(getattr(options, name))]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OPENBLAS_", "OMP_", "MKL_", "GOMP_", "KMP_"))}
    if options.avx2:
        env |= {"MILLRACE_CPU": "avx2", "OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2",
                "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
    load = os.getloadavg()[0]       # before this adds to it
    ours = Program([BENCH] + shape, env)
    theirs = Program([sys.executable, os.path.abspath(__file__), "--torch"] + shape +
                     ["--compile"] * options.compile, env)
    for program in (ours, theirs) * options.warmup:
        program.step(counts=False)
    ours.step()
    for _ in range(options.rounds):
        theirs.step()
        ours.step()
    wall, cpu = ratios(ours.wall, theirs.wall), ratios(ours.cpu, theirs.cpu)
    for program in (ours, theirs):
        program.close()
    result = {"model": options.model, "image": options.image, "batch": options.batch, "threads": options.threads,
              "precision": options.precision, "compiled": options.compile, "avx2_only": options.avx2, "rounds": options.rounds, "load_before": load}
    for name, program in (("millrace", ours), ("pytorch", theirs)):
        result[name] = {"device": program.device, "seconds": statistics.median(program.wall),
                        "cpu_seconds": statistics.median(program.cpu), "all_seconds": program.wall,
                        "all_cpu_seconds": program.cpu}
    for name, values in (("ratio", wall), ("cpu_ratio", cpu)):
        result[name] = statistics.median(values)
        result[name + "_range"] = [min(values), max(values)]
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=SHAPES, default="ViT-B_16")
    parser.add_argument("--image", type=int, default=224)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--precision", choices=("float32", "bf16"), default="float32")
    parser.add_argument("--device", default="cpu", help="of both: cpu, cuda")
    parser.add_argument("--compile", action="store_true", help="PyTorch's model through torch.compile")
    parser.add_argument("--avx2", action="store_true", help="neither uses more than AVX2")
    parser.add_argument("--json", help="all figures")
    parser.add_argument("--torch", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.torch:
        return be_torch(options)
    result = compare(options)
    for name in ("millrace", "pytorch"):
        r = result[name]
        print(f"{name:9} {r['seconds']:8.3f} s a step, {r['cpu_seconds']:8.3f} CPU s   {r['device']}")
    if result["load_before"] > 0.5:
        print(f"others kept this machine busy (load {result['load_before']:.1f}): look at the ratios, not the seconds")
    for name, what in (("ratio", "wall time"), ("cpu_ratio", "CPU time")):
        low, high = result[name + "_range"]
        rounds = f"({low:.2f} to {high:.2f} over {options.rounds} rounds)"
        print(f"millrace is {result[name]:.2f} x PyTorch by {what} {rounds}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)
            f.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
