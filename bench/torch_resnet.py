#!/usr/bin/python3
"""PyTorch's speed in training a ResNet: the yardstick of `dgc bench train`. Prints one JSON line.

    /usr/bin/python3 bench/torch_resnet.py --threads 2 --batch 128
    python3 bench/torch_resnet.py --model resnet50 --device cuda --amp --batch 256

Synthetic images in host memory (pinned, and copied without waiting, where there is a GPU), channels_last, SGD with
momentum, Nesterov and weight decay. samples_per_s is the median of --repeats stretches of --steps steps each, after
--warmup steps.
"""

import torch
import torch.nn.functional as F

import program
import torch_speed

models = program.reference("models")
BATCHES = 4  # different ones, in turn


def main():
    parser = program.Parser(__doc__)
    parser.add_argument("--model", choices=("resnet20", "resnet110", "resnet50"), default="resnet20",
                        help="resnet50 on images of ImageNet's size, the others on CIFAR's")
    parser.add_argument("--amp", action="store_true", help="bf16 autocast")
    parser.add_argument("--batch", type=program.positive, default=128, help="images")
    parser.add_argument("--compile", action="store_true", help="torch.compile the model (PyTorch 2)")
    options, device = torch_speed.begin(parser)

    on_gpu = device.type == "cuda"
    imagenet = options.model == "resnet50"
    side, classes = (224, 1000) if imagenet else (32, 10)
    model = models.ResNet50(classes) if imagenet else models.CifarResNet(int(options.model[6:]), classes)
    model = model.to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
    images = [torch.randn(options.batch, 3, side, side).to(memory_format=torch.channels_last) for _ in range(BATCHES)]
    labels = [torch.randint(classes, (options.batch,)) for _ in range(BATCHES)]
    if on_gpu:
        images, labels = [x.pin_memory() for x in images], [y.pin_memory() for y in labels]
        torch.backends.cudnn.benchmark = True
    forward = torch.compile(model) if options.compile else model

    def train(steps):
        for step in range(steps):
            x = images[step % BATCHES].to(device, non_blocking=True)
            y = labels[step % BATCHES].to(device, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device.type, torch.bfloat16, enabled=options.amp):
                loss = F.cross_entropy(forward(x), y)
            loss.backward()
            optimizer.step()

    torch_speed.run("torch_resnet", train, options.batch, options, device, model=options.model, amp=options.amp,
                    compile=options.compile, batch=options.batch)


if __name__ == "__main__":
    program.start(main)
