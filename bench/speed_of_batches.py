"""What torch_data.py and dali_data.py share: how many samples they make in a second, and in one of the processors."""

import json
import resource
import time

import program


def options_of(doc, threads):
    """threads: the name of the option that says how many make batches."""
    parser = program.Parser(doc)
    parser.add_argument("path", type=program.folder, metavar="PATH", help="of the images, with a folder train")
    parser.add_argument("--batch", type=program.positive, default=16, help="images")
    parser.add_argument(f"--{threads}", type=program.positive, default=1, help="that make batches")
    parser.add_argument("--seconds", type=program.above_zero, default=10, help="to measure for, at least")
    return parser.parse_args()


def processor_seconds(pids):
    """Of this process and of its workers."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    total = own.ru_utime + own.ru_stime
    for pid in pids:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0]) / 1e9  # the worker's main thread, which does all the work
    return total


def measure(next_batch, options, pids=(), **details):
    """Prints the JSON line. next_batch makes options.batch samples; pids are those of workers."""
    start, cpu_start, count, seconds = time.monotonic(), processor_seconds(pids), 0, 0.0
    while seconds < options.seconds:
        next_batch()
        count += options.batch
        seconds = time.monotonic() - start
    cpu_seconds = processor_seconds(pids) - cpu_start
    print(json.dumps({**details, "seconds": seconds, "cpu_seconds": cpu_seconds, "samples_per_s": count / seconds,
                      "samples_per_cpu_s": count / cpu_seconds}))
