"""Numbers that Python and C++ (tests/train/hashed.h) both make from a name and an index, so that no input has to be stored."""

import torch

MASK = 0xFFFFFFFF


def fnv1a(name):
    """The 32-bit FNV-1a hash of a string."""
    h = 0x811C9DC5
    for byte in name.encode():
        h = ((h ^ byte) * 0x01000193) & MASK
    return h


def bits(name, n):
    """32 bits per index 0 ... n-1: MurmurHash3's finalizer over index * golden ratio + hash of the name."""
    h = (torch.arange(n, dtype=torch.int64) * 0x9E3779B9 + fnv1a(name)) & MASK
    h ^= h >> 16
    h = (h * 0x85EBCA6B) & MASK  # the product wraps at 2^64, which leaves the low 32 bits right
    h ^= h >> 13
    h = (h * 0xC2B2AE35) & MASK
    h ^= h >> 16
    return h


def uniform(name, shape, scale, centre=0.0):
    """float32 in [centre - scale, centre + scale): two float32 roundings, as in C++."""
    n = 1
    for size in shape:
        n *= size
    unit = ((bits(name, n) >> 8) - (1 << 23)).to(torch.float32) * 2.0**-23
    return (unit * torch.tensor(scale, dtype=torch.float32) + torch.tensor(centre, dtype=torch.float32)).reshape(shape)


def images(name, batch, size):
    """[batch, 3, size, size], unit variance."""
    return uniform(name, (batch, 3, size, size), 3**0.5)


def labels(name, batch, classes):
    return bits(name, batch) % classes


def fill(model, norm_weight=1.0, norm_bias=0.0, norm_spread=0.25):
    """Weights by name. BatchNorm is not left at 1 and 0, where a forgotten scale or shift would go unseen."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() > 1:
                fan_in = p[0].numel()
                p.copy_(uniform(name, p.shape, (6.0 / fan_in) ** 0.5))
            elif name.startswith("fc"):
                p.copy_(uniform(name, p.shape, 0.25))
            else:
                p.copy_(uniform(name, p.shape, norm_spread, norm_weight if name.endswith("weight") else norm_bias))
        for name, b in model.named_buffers():
            if b.dim() == 1:
                b.copy_(uniform(name, b.shape, 0.25, 1.0 if name.endswith("running_var") else 0.0))
    return model
