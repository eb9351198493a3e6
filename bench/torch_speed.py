"""What torch_resnet, torch_lstm and torch_deep_speech know of measuring: how many samples a second a training loop gets through."""

import statistics
import time


def add_options(parser):
    parser.add_argument("--steps", type=int, default=10, help="in a measured stretch")
    parser.add_argument("--repeats", type=int, default=5, help="measured stretches")
    parser.add_argument("--warmup", type=int, default=5, help="steps before the first stretch")


def measure(train, samples, options):
    """For the JSON line. train(steps) returns once all has been computed; samples: of one step."""
    train(options.warmup)
    speeds = []
    for _ in range(options.repeats):
        start = time.perf_counter()
        train(options.steps)
        speeds.append(options.steps * samples / (time.perf_counter() - start))
    return {"samples_per_s": round(statistics.median(speeds), 1), "lowest": round(min(speeds), 1),
            "highest": round(max(speeds), 1)}
