"""Prints how many clients each server has, from the view of `clients`."""

import sys

import numpy

from stateplane_sync.collector import Finding, far, run, threshold_option


def servers(values, told, threshold=0):
    """Servers with more clients than the threshold. A place of which another value is seen than the
    register has may be one client less of one server and one more of another."""
    values = numpy.asarray(values, dtype=numpy.uint64)
    differ = far(told)
    chosen = values & numpy.uint64(0xFFFFFFFF)
    for server, count in zip(*numpy.unique(chosen[values != 0], return_counts=True)):
        low = 0 if differ is None else max(int(count) - differ, 0)
        high = None if differ is None else int(count) + differ
        if high is None or high > threshold:
            about = {"service": int(server) >> 16, "server": (int(server) & 0xFFFF) - 1}
            yield Finding("server", low > threshold, low, high, about)


def main(arguments=None):
    return run(
        __doc__,
        ["clients"],
        lambda views, chosen: servers(
            views["clients"].values, views["clients"].told, chosen.threshold
        ),
        threshold_option(0, "print servers with more clients"),
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
