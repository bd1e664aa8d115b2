"""Prints the names whose TTL changed often, from the views of `changes` and `ttls`."""

import argparse
import sys

import numpy

from stateplane_sync import hashes
from stateplane_sync.collector import error, far, run, seen

TYPES = {"A": 1, "NS": 2, "CNAME": 5, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28}


def place(name, record_type, locations):
    """The bucket of a name and type, and the 48 bits that stand there."""
    words = (*hashes.halves(hashes.name(name)), record_type)
    bits = locations.bit_length() - 1
    return hashes.upper(hashes.words(0, *words), bits), hashes.words(1, *words) >> 16 | 1


def changed(values, told, ttls, ttls_told, threshold, names=()):
    """Names whose TTL changed more often than the threshold, with the last TTL."""
    values = numpy.asarray(values, dtype=numpy.uint64)
    known = {
        place(name, number, len(values)): f"{name} {kind}"
        for name in names
        for kind, number in TYPES.items()
    }
    differ, bound = far(told), error(ttls_told)
    counts = values & numpy.uint64(0xFFFF)
    for location in numpy.flatnonzero(counts > threshold):
        location = int(location)
        value, count = int(values[location]), int(counts[location])
        tag = value >> 16
        about = {"location": location, "name": known.get((location, tag), f"{tag:012x}")}
        if bound is not None:
            ttl = int(ttls[location])
            about |= {"ttl_low": max(ttl - bound, 0), "ttl_high": ttl + bound}
        yield seen("ttl", count, 0xFFFF, differ, about, "buckets")


def _options(parser):
    parser.add_argument("--threshold", type=int, default=3, help="changes that are usual")
    parser.add_argument(
        "--names-from", type=argparse.FileType(), help="file of names to call, one a line"
    )


def _find(views, chosen):
    names = [line.strip() for line in chosen.names_from or [] if line.strip()]
    changes, ttls = views["changes"], views["ttls"]
    return changed(
        changes.values, changes.told, ttls.values, ttls.told, chosen.threshold, names
    )


def main(arguments=None):
    return run(__doc__, ["changes", "ttls"], _find, _options, arguments)


if __name__ == "__main__":
    sys.exit(main())
