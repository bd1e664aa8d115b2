"""Prints names with many addresses, and addresses with many names, from the views of `domains`,
`addresses` and `pairs`."""

import argparse
import sys

import numpy

from stateplane_sync import hashes
from stateplane_sync.collector import Finding, address, far, run, share_of_pairs, unseen


def place(name, locations):
    """The bucket of a name, and the 40 bits of its hash that stand there."""
    value = hashes.name(name)
    bits = locations.bit_length() - 1
    return hashes.upper(hashes.words(2, *hashes.halves(value)), bits), value & 0xFFFFFFFFFF


def _counted(what, held, keys, counts, most, told, share, threshold, about):
    """Buckets whose count is, or may be, above the threshold. Pairs that the filter took for old ones
    are not counted, so that the high end has more."""
    differ = far(told)
    for location in numpy.flatnonzero(held != 0):
        count = int(counts[location])
        # The greatest number stays.
        more = unseen(count, share) if count < most else None
        high = None if more is None or differ != 0 else count + more
        if count <= threshold and (more is not None and count + more <= threshold):
            continue
        known = {"location": int(location)} | about(int(location), int(keys[location]))
        if differ != 0:
            known["buckets_that_differ"] = "any" if differ is None else differ
        certain = differ == 0 and count > threshold
        yield Finding(what, certain, count if differ == 0 else 0, high, known)


def domains(values, told, pairs, pairs_told, threshold, names=()):
    """Names with more addresses than the threshold. `pairs` are the words of the filter; of `names`
    those that are found are called by their names, others by their hashes."""
    values = numpy.asarray(values, dtype=numpy.uint64)
    known = {place(name, len(values)): name for name in names}

    def about(location, tag):
        return {"name": known.get((location, tag), f"{tag:010x}")}

    keys, counts = values >> numpy.uint64(24), values & numpy.uint64(0xFFFFFF)
    share = share_of_pairs(pairs, pairs_told)
    return _counted("domain", values, keys, counts, 0xFFFFFF, told, share, threshold, about)


def addresses(values, told, pairs, pairs_told, threshold):
    """Addresses with more names than the threshold."""
    values = numpy.asarray(values, dtype=numpy.uint64)
    keys, counts = values >> numpy.uint64(32), values & numpy.uint64(0xFFFFFFFF)
    share = share_of_pairs(pairs, pairs_told)

    def about(_, key):
        return {"address": address(key)}

    return _counted("address", values, keys, counts, 0xFFFFFFFF, told, share, threshold, about)


def _options(parser):
    parser.add_argument("--threshold", type=int, default=16, help="partners that are usual")
    parser.add_argument(
        "--names-from", type=argparse.FileType(), help="file of names to call, one a line"
    )


def _find(views, chosen):
    names = [line.strip() for line in chosen.names_from or [] if line.strip()]
    pairs = views["pairs"].values, views["pairs"].told
    held, told = views["domains"].values, views["domains"].told
    yield from domains(held, told, *pairs, chosen.threshold, names)
    held, told = views["addresses"].values, views["addresses"].told
    yield from addresses(held, told, *pairs, chosen.threshold)


def main(arguments=None):
    # The filter is read last, so that it has all pairs that the others may count.
    return run(__doc__, ["domains", "addresses", "pairs"], _find, _options, arguments)


if __name__ == "__main__":
    sys.exit(main())
