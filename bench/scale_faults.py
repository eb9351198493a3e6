"""What slow and lost workers cost a run in which every step waits for all."""

import math
import statistics


def slowest(workers, deviation):
    """Expected time of the slowest of so many workers, over the mean: times are normal with this relative deviation.
    The expected maximum is that of Blom, "Statistical Estimates and Transformed Beta-Variables", 1958."""
    if workers == 1:
        return 1.0
    return 1 + deviation * statistics.NormalDist().inv_cdf((workers - 0.375) / (workers + 0.25))


def interval_s(between_failures_s, save_s):
    """Seconds from one checkpoint to the next that lose least: Young, "A First Order Approximation to the Optimum
    Checkpoint Interval", CACM 17, 1974."""
    return math.sqrt(2 * save_s * between_failures_s)


def lost_share(between_failures_s, save_s, restart_s):
    """Share of the time in which nothing is won: checkpoints, what is computed twice, and the way back."""
    interval = interval_s(between_failures_s, save_s)
    return save_s / interval + (interval / 2 + restart_s) / between_failures_s
