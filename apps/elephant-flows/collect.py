"""Prints elephant flows with their bytes, from the views of `bytes` and `elephants`."""

import sys

import numpy

from stateplane_sync import hashes
from stateplane_sync.collector import Finding, address, error, far, run, threshold_option

ROWS = 4
_MOST = 0xFFFFFFFF


def flow(addresses, rest):
    """The flow of a place's two elements, as source, destination, ports and protocol; `None` if they are
    of two flows."""
    source, destination = hashes.halves(addresses)
    if hashes.upper(hashes.words(5, source, destination), 24) != rest & 0xFFFFFF:
        return None
    return source, destination, rest >> 24 & _MOST, rest >> 56


def estimate(values, told, key):
    """The bytes of a flow: low end, which may be missed with a probability of 2^-4, and high end."""
    columns = (len(values) - 1) // ROWS
    bits = columns.bit_length() - 1
    counters = [
        int(values[row * columns + hashes.upper(hashes.words(row, *key), bits)])
        for row in range(ROWS)
    ]
    bound, counted, least = error(told), int(values[-1]), min(counters)
    if bound is None:
        return 0, None
    high = None if least + bound >= _MOST else least + bound
    # Counters at their end say no more than that.
    if counted + bound >= _MOST:
        return 0, high
    return max(least - 2 * (counted + bound) // columns, 0), high


def elephants(values, told, names, names_told, threshold):
    """Named flows with more bytes than the threshold."""
    differ = far(names_told)
    places = numpy.asarray(names, dtype=numpy.uint64).reshape(-1, 2)
    for addresses, rest in places[places.any(axis=1)]:
        key = flow(int(addresses), int(rest))
        if key is None:
            continue
        low, high = estimate(values, told, key)
        if high is not None and high <= threshold:
            continue
        source, destination, ports, protocol = key
        about = {
            "flow": f"{address(source)}:{ports >> 16}>{address(destination)}:{ports & 0xFFFF}/{protocol}",
            "low_missed_by_chance": 2.0**-ROWS,
        }
        if differ != 0:
            about["elements_that_differ"] = "any" if differ is None else differ
        yield Finding("elephant", low > threshold, low, high, about)


def _find(views, chosen):
    values, names = views["bytes"], views["elephants"]
    return elephants(values.values, values.told, names.values, names.told, chosen.threshold)


def main(arguments=None):
    return run(
        __doc__,
        ["bytes", "elephants"],
        _find,
        threshold_option(10_000_000, "bytes of a usual flow"),
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
