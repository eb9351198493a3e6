#!/usr/bin/python3
"""The DGC step of a model written in PyTorch operations, as implementations on PyTorch do it:
the yardstick of `dgc bench dgc`. Prints one JSON line.

    /usr/bin/python3 bench/torch_dgc_step.py --threads 2
    python3 bench/torch_dgc_step.py --device cuda --model deep_speech

Per tensor: momentum correction, accumulation, selection of the k largest |v|, gathering them, zeroing v and u there.
1-D tensors are not compressed and get ordinary momentum. --selection topk is exact; sampled takes the threshold from
1 % of the elements and repairs the count, as Lin et al. describe it. ms_per_step is the median over --steps steps.
copy_gb_per_s is the speed of a plain copy in the same run, reads and writes counted.
"""

import json
import statistics

import torch

import program
import torch_speed

SHAPES = program.reference("shapes").SHAPES
GRADIENTS = 3  # different ones, in turn, so that the selection does not repeat itself
MOMENTUM = 0.9


def select_topk(v, k):
    _, indices = v.abs().topk(k, sorted=False)
    return indices


def select_sampled(v, k):
    magnitude = v.abs()
    n = magnitude.numel()
    sample = magnitude[torch.randint(n, (max(n // 100, min(n, 1000)),), device=v.device)]
    threshold = sample.topk(max(1, sample.numel() * k // n), sorted=False)[0].min()
    indices = (magnitude >= threshold).nonzero().view(-1)
    for _ in range(10):
        if indices.numel() >= 0.8 * k:
            break
        threshold = threshold * 0.8
        indices = (magnitude >= threshold).nonzero().view(-1)
    if indices.numel() > 1.3 * k:
        indices = indices[magnitude[indices].topk(k, sorted=False)[1]]
    return indices


def step(gradients, us, vs, select, density, nesterov):
    """The message: (values, indices) of every compressed tensor."""
    message = []
    for g, u, v in zip(gradients, us, vs):
        if nesterov:
            u.add_(g).mul_(MOMENTUM)
        else:
            u.mul_(MOMENTUM).add_(g)
        if g.dim() == 1:
            continue
        v.add_(u)
        if nesterov:
            v.add_(g)
        flat_u, flat_v = u.view(-1), v.view(-1)
        indices = select(flat_v, max(1, round(density * flat_v.numel())))
        message.append((flat_v[indices], indices))
        flat_v.index_fill_(0, indices, 0)
        flat_u.index_fill_(0, indices, 0)
    return message


def copy_gb_per_s(elements, device):
    source, target = torch.ones(elements, device=device), torch.zeros(elements, device=device)
    seconds = torch_speed.seconds_of(lambda _: target.copy_(source), device, 11)
    return 2 * 4 * elements / statistics.median(seconds) / 1e9


def main():
    parser = program.Parser(__doc__)
    parser.add_argument("--threads", type=program.positive, default=2, help="of the processor")
    parser.add_argument("--steps", type=program.positive, default=11, help="measured ones")
    parser.add_argument("--warmup", type=program.at_least(0), default=3, help="steps before them")
    parser.add_argument("--density", type=program.above_zero, default=0.001, help="share of a tensor that is sent")
    parser.add_argument("--selection", choices=("topk", "sampled"), default="topk", help="of what is sent")
    parser.add_argument("--nesterov", action="store_true", help="momentum as Nesterov has it")
    parser.add_argument("--model", choices=tuple(SHAPES), default="resnet50", help="whose tensors")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    options = parser.parse_args()

    device = torch_speed.start(options.device, options.threads)
    shapes = SHAPES[options.model]()
    parameters = sum(torch.Size(shape).numel() for shape in shapes)
    gradients = [[torch.randn(shape, device=device) for shape in shapes] for _ in range(GRADIENTS)]
    us = [torch.zeros(shape, device=device) for shape in shapes]
    vs = [torch.zeros(shape, device=device) for shape in shapes]
    select = select_topk if options.selection == "topk" else select_sampled

    def one_step(number):
        nonlocal message
        message = step(gradients[number % GRADIENTS], us, vs, select, options.density, options.nesterov)

    message = []
    with torch.no_grad():
        seconds = torch_speed.seconds_of(one_step, device, options.warmup + options.steps)
    ms = 1e3 * statistics.median(seconds[options.warmup:])
    print(json.dumps({"program": "torch_dgc_step", "torch": torch.__version__, "device": options.device,
                      "model": options.model, "threads": options.threads,
                      "selection": options.selection, "nesterov": options.nesterov, "parameters": parameters,
                      "sent": sum(indices.numel() for _, indices in message), "ms_per_step": round(ms, 3),
                      "gb_per_s": round(20 * parameters / ms / 1e6, 3),
                      "copy_gb_per_s": round(copy_gb_per_s(parameters, device), 3)}))


if __name__ == "__main__":
    program.start(main)
