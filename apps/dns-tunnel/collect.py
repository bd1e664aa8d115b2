"""Prints clients with unused DNS responses, and those that are blocked, from the view of `clients`."""

import sys

import numpy

from stateplane_sync.collector import address, far, run, seen, threshold_option


def suspects(values, told, threshold):
    """Clients that are blocked, or have more unused responses than the threshold."""
    values = numpy.asarray(values, dtype=numpy.uint64)
    differ = far(told)
    blocked = (values >> numpy.uint64(16) & numpy.uint64(0xFFFF)) != 0
    unused = values & numpy.uint64(0xFFFF)
    for location in numpy.flatnonzero(blocked | (unused > threshold)):
        value, count = int(values[location]), int(unused[location])
        about = {"location": int(location), "client": address(value >> 32)}
        what = "blocked" if blocked[location] else "suspect"
        yield seen(what, count, 0xFFFF, differ, about, "places")


def main(arguments=None):
    return run(
        __doc__,
        ["clients"],
        lambda views, chosen: suspects(
            views["clients"].values, views["clients"].told, chosen.threshold
        ),
        threshold_option(50, "unused responses that are usual"),
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
