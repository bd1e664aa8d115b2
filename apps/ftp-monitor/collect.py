"""Prints who was refused data connections, and how many are in which state, from the views of `refused`
and `channels`."""

import sys

import numpy

from stateplane_sync.collector import Finding, above, addresses_that_end_in, far, run, threshold_option

STATES = {1: "announced", 2: "open", 3: "closing"}


def refused(values, told, threshold):
    """Addresses from which more connections than the threshold were refused, by their low bits."""
    for location, low, high, certain in above(values, told, threshold, most=0xFFFFFFFF):
        where = addresses_that_end_in(location, len(values))
        yield Finding("refused", certain, low, high, {"location": location, "addresses": where})


def channels(values, told):
    """Numbers of data connections by state."""
    states = numpy.asarray(values, dtype=numpy.uint64) & numpy.uint64(3)
    differ = far(told)
    for number, state in STATES.items():
        count = int((states == number).sum())
        low = 0 if differ is None else max(count - differ, 0)
        high = None if differ is None else count + differ
        yield Finding(state, low > 0, low, high)


def _find(views, chosen):
    yield from refused(views["refused"].values, views["refused"].told, chosen.threshold)
    yield from channels(views["channels"].values, views["channels"].told)


def main(arguments=None):
    return run(
        __doc__,
        ["refused", "channels"],
        _find,
        threshold_option(10, "refused connections that are usual"),
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
