"""What the torch_* programs share: how they start, and how many samples a second a training gets through."""

import json
import statistics
import time

import torch

from program import at_least, positive


def begin(parser):
    """Adds the options of all trainings; returns all options and the device."""
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", type=positive, default=2, help="of the processor")
    parser.add_argument("--tf32", action="store_true", help="on a GPU: TF32 in convolutions and in matrix products")
    parser.add_argument("--steps", type=positive, default=10, help="in a measured stretch")
    parser.add_argument("--repeats", type=positive, default=5, help="measured stretches")
    parser.add_argument("--warmup", type=at_least(0), default=5, help="steps before the first stretch")
    options = parser.parse_args()
    return options, start(options.device, options.threads, options.tf32)


def start(device, threads, tf32=False):
    """Returns the device."""
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    # PyTorch's default is TF32 for convolutions and not for matrix products; dgc's fp32 has it nowhere.
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32
    return torch.device(device)


def seconds_of(call, device, times):
    """Of each of so many calls; a GPU has done what it has been told then."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    seconds = []
    for number in range(times):
        wait()
        begun = time.perf_counter()
        call(number)
        wait()
        seconds.append(time.perf_counter() - begun)
    return seconds


def run(program, train, samples, options, device, **details):
    """Measures train(steps) and prints the JSON line, with details of what was trained. samples: of one step."""
    train(options.warmup)
    speeds = [options.steps * samples / seconds
              for seconds in seconds_of(lambda _: train(options.steps), device, options.repeats)]
    print(json.dumps({"program": program, "torch": torch.__version__, "device": options.device,
                      "threads": options.threads, "tf32": options.tf32, **details,
                      "samples_per_s": round(statistics.median(speeds), 1), "lowest": round(min(speeds), 1),
                      "highest": round(max(speeds), 1)}))
