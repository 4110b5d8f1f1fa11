#!/usr/bin/env python3
"""oracle_losses.py - the numbers that test_device_ends.c and test_scores.c expect, by PyTorch and scikit-learn.

Not part of the suite, which has neither: run it where both are installed, and compare what it prints with the tests.
"""
import numpy as np
import torch
from sklearn.metrics import average_precision_score, f1_score

x = torch.tensor([[1.5, -2, 0.25, 3], [-0.5, 0, 8, -7]], dtype=torch.float64)
t = torch.tensor([[1, 0, 0, 1], [0.25, 1, 0, 0.5]], dtype=torch.float64)
p = torch.tensor([1, 2, 3, 0.5], dtype=torch.float64)
bce = torch.nn.functional.binary_cross_entropy_with_logits(x, t, pos_weight=p, reduction="none").mean(1)
ce = torch.nn.functional.cross_entropy(x, torch.tensor([2, 0]), label_smoothing=0.1, reduction="none")
print("several labels:", ", ".join(f"{v:.12g}" for v in bce.tolist()))
print("smoothed:", ", ".join(f"{v:.12g}" for v in ce.tolist()))

# 12 samples of 3 classes, with ties: scores of tenths from a small generator that the test repeats.
state, scores, wanted = 1, np.zeros((12, 3)), np.zeros((12, 3), dtype=int)
for i in range(12):
    for c in range(3):
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        wanted[i, c] = (state >> 16) % 3 == 0
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        scores[i, c] = ((state >> 16) % 10) / 10 + 0.05
each = [average_precision_score(wanted[:, c], scores[:, c]) for c in range(3)]
print("average precision:", ", ".join(f"{v:.12g}" for v in each), "mean", f"{np.mean(each):.12g}")
print("F1 at 0.5:", ", ".join(f"{v:.12g}" for v in f1_score(wanted, scores >= 0.5, average=None)),
      "micro", f"{f1_score(wanted, scores >= 0.5, average='micro'):.12g}")
