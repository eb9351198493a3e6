#!/usr/bin/python3
"""Writes the dumps beside itself: the truth for tests/train/torch_parity_test.cpp and language_parity_test.cpp.

    /usr/bin/python3 tests/reference/make_dumps.py      # Debian's python3-torch is enough

Everything is computed in float64 and stored in float32. Weights, images and labels come from hashed.py, so only results
are stored, and of a large tensor its norm and a random sample.
"""

import pathlib

import torch

import cases
import hashed
import language
import safetensors_io

SAMPLE = 128


def sample(tensor):
    """The whole of a small tensor, SAMPLE random elements of a large one. (A stride would hit the same channel always.)"""
    flat = tensor.detach().reshape(-1)
    if flat.numel() <= SAMPLE:
        return flat.clone()
    return flat[hashed.bits("sample", SAMPLE) * flat.numel() >> 32]


def statistics(model):
    return {name: b.clone() for name, b in model.named_buffers() if b.dim() == 1}


def evaluation(case, model):
    images, _ = cases.images_and_labels(case, 0, torch.float64)
    return model.eval()(images)


def one_step(prefix, case):
    """Logits in evaluation and training, the loss, all gradients, and the running statistics after one forward pass."""
    model = cases.fresh(case, torch.float64)
    out = {"eval.logits": evaluation(case, model)}

    def record(logits, loss):
        out["logits"], out["loss"] = logits, loss.reshape(1)
        for name, p in model.named_parameters():
            out[f"grad.sample.{name}"], out[f"grad.norm.{name}"] = sample(p.grad), p.grad.norm().reshape(1)

    cases.train(case, model.train(), torch.float64, record)
    out.update({f"buffer.{name}": b for name, b in statistics(model).items()})
    return {f"{prefix}.{name}": tensor for name, tensor in out.items()}


def many_steps(prefix, case):
    """Losses, and every weight after every step."""
    model = cases.fresh(case, torch.float64)
    losses, samples, norms = [], {}, {}

    def record(_, loss):
        losses.append(loss)
        for name, p in model.named_parameters():
            samples.setdefault(name, []).append(sample(p))
            norms.setdefault(name, []).append(p.detach().norm())

    cases.train(case, model, torch.float64, record)
    out = {"loss": torch.stack(losses)}
    out.update({f"buffer.{name}": b for name, b in statistics(model).items()})
    for name in samples:
        out[f"sample.{name}"], out[f"norm.{name}"] = torch.stack(samples[name]), torch.stack(norms[name])
    out["eval.logits"] = evaluation(case, model)
    return {f"{prefix}.{name}": tensor for name, tensor in out.items()}


def language_model(case):
    """Of the first step the output and all gradients; of every step loss, norm and weights; the state in the end."""
    out, losses, norms_before_clipping, samples, norms = {}, [], [], {}, {}

    def record(step, y, loss, norm, gradients, model, state):
        if step == 0:
            out["y"] = y
            out.update({f"grad.{name}": g for name, g in gradients.items()})
        losses.append(loss)
        norms_before_clipping.append(norm)
        for name, p in model.named_parameters():
            samples.setdefault(name, []).append(sample(p))
            norms.setdefault(name, []).append(p.detach().norm())
        out["h"], out["c"] = (s.detach() for s in state)

    language.train(case, torch.float64, record)
    out["loss"], out["norm"] = torch.stack(losses), torch.stack(norms_before_clipping)
    for name in samples:
        out[f"sample.{name}"], out[f"norm.{name}"] = torch.stack(samples[name]), torch.stack(norms[name])
    return {f"{case.name}.{name}": tensor for name, tensor in out.items()}


def write(name, tensors):
    path = pathlib.Path(__file__).parent / name
    safetensors_io.save(path, tensors)
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    write("resnet20.safetensors", {**one_step("one", cases.ONE_STEP), **many_steps("many", cases.TWENTY_STEPS)})
    write("lstm_lm.safetensors", {k: v for case in language.CASES for k, v in language_model(case).items()})
    alexnet = evaluation(cases.ALEXNET, cases.fresh(cases.ALEXNET, torch.float64))
    write("imagenet.safetensors", {**one_step("resnet18", cases.RESNET18), "alexnet.eval.logits": alexnet})
