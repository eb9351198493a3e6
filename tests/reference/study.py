#!/usr/bin/python3
"""How far float32 drifts from float64 in PyTorch itself, for the inputs that the dumps use and for N others.

    /usr/bin/python3 tests/reference/study.py [N]

margin: the distance from 0 of the ReLU input nearest to it, in units of that layer's float32 error (root mean square).
Below about 4, another float32 implementation may see the other sign.
"""

import dataclasses
import sys

import torch
import torch.nn as nn

import cases


def trajectory(case, dtype):
    """Per step: ReLU inputs, loss, gradients, weights."""
    model = cases.fresh(case, dtype)
    steps, inputs = [], []
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.register_forward_pre_hook(lambda _, x: inputs.append(x[0].detach().double().clone()))

    def record(_, loss):
        grads = {n: p.grad.double().clone() for n, p in model.named_parameters()}
        weights = {n: p.detach().double().clone() for n, p in model.named_parameters()}
        steps.append((list(inputs), loss.item(), grads, weights))
        inputs.clear()

    cases.train(case, model, dtype, record)
    return steps


def apart(a, b):
    """The largest norm-wise relative difference of any tensor."""
    return max(float((a[n] - b[n]).norm() / b[n].norm()) for n in b)


def study(title, case):
    flips, margin, grads, weights, losses = 0, float("inf"), 0, 0, 0
    for single, truth in zip(trajectory(case, torch.float32), trajectory(case, torch.float64)):
        for x, exact in zip(single[0], truth[0]):
            flips += int(((x > 0) != (exact > 0)).sum())
            margin = min(margin, float(exact.abs().min() / (x - exact).pow(2).mean().sqrt()))
        losses = max(losses, abs(single[1] - truth[1]) / abs(truth[1]))
        grads, weights = max(grads, apart(single[2], truth[2])), max(weights, apart(single[3], truth[3]))
    print(f"{title}, seed {case.seed:2}: {flips:4} flips, margin {margin:5.1f}; float32 is off by at most "
          f"{losses:.1e} (loss), {grads:.1e} (gradients), {weights:.1e} (weights)", flush=True)


if __name__ == "__main__":
    used = {"one step": cases.ONE_STEP, "20 steps": cases.TWENTY_STEPS, "ResNet-18": cases.RESNET18}
    for title, case in used.items():
        study(title + ", used", case)
    others = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    for title, case in used.items():
        for seed in range(others):
            study(title, dataclasses.replace(case, seed=seed))
    study("20 steps, 32x32, BatchNorm near 1 x + 0", dataclasses.replace(cases.ONE_STEP, steps=20))
