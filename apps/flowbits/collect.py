"""Prints connections with alerts, or with certain bits set, from the view of `connections`."""

import sys

import numpy

from stateplane_sync import hashes
from stateplane_sync.collector import far, run, seen


def place(one, other, protocol, locations):
    """The place of a connection and the 40 bits that stand there; its ends are an address and a port
    each, as numbers, in any order."""
    (low, low_port), (high, high_port) = sorted([one, other])
    words = (low, high, low_port << 16 | high_port, protocol)
    bits = locations.bit_length() - 1
    return hashes.upper(hashes.words(0, *words), bits), hashes.words(1, *words) >> 24


def connections(values, told, threshold, bits=0):
    """Connections with more alerts than the threshold, or, if `bits` is not 0, all of these set."""
    values = numpy.asarray(values, dtype=numpy.uint64)
    differ = far(told)
    alerts = values >> numpy.uint64(16) & numpy.uint64(0xFF)
    found = alerts > threshold
    if bits:
        found |= values & numpy.uint64(bits) == bits
    for location in numpy.flatnonzero(found):
        value, count = int(values[location]), int(alerts[location])
        about = {
            "location": int(location),
            "connection": f"{value >> 24:010x}",
            "bits": f"{value & 0xFF:08b}",
        }
        yield seen("connection", count, 0xFF, differ, about, "places")


def _options(parser):
    parser.add_argument("--threshold", type=int, default=0, help="alerts that are usual")
    parser.add_argument(
        "--bits", type=lambda text: int(text, 0), default=0, help="also print those with these bits"
    )


def _find(views, chosen):
    view = views["connections"]
    return connections(view.values, view.told, chosen.threshold, chosen.bits)


def main(arguments=None):
    return run(__doc__, ["connections"], _find, _options, arguments)


if __name__ == "__main__":
    sys.exit(main())
