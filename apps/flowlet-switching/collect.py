"""Prints how many places of flows each path has which were used lately, from the views of `times` and
`paths`."""

import sys

import numpy

from stateplane_sync.collector import Finding, error, far, run


def loads(times, times_told, paths, paths_told, within_us, threshold=0):
    """Paths with more places than the threshold that had a packet within so many µs before the newest
    one that is seen."""
    times = numpy.asarray(times, dtype=numpy.uint64)
    paths = numpy.asarray(paths, dtype=numpy.uint64)
    bound, differ = error(times_told), far(paths_told)
    oldest = max(int(times.max(initial=0)) - within_us, 0)
    surely = (times >= oldest) & (times != 0)
    # The time itself is at most E later than what is seen.
    reached = max(oldest - (bound or 0), 0)
    maybe = numpy.ones(len(times), dtype=bool) if bound is None else times >= reached
    for path in numpy.unique(paths[paths != 0]):
        of_path = paths == path
        low = int((of_path & surely).sum()) if bound is not None else 0
        high = int((of_path & maybe).sum())
        # So many places may have another path than is seen.
        low = 0 if differ is None else max(low - differ, 0)
        high = None if differ is None else high + differ
        if high is None or high > threshold:
            about = {"group": int(path) >> 16, "member": (int(path) & 0xFFFF) - 1}
            yield Finding("path", low > threshold, low, high, about)


def _options(parser):
    parser.add_argument("--within", type=int, default=100_000, help="µs that are lately")
    parser.add_argument("--threshold", type=int, default=0, help="print paths with more places")


def _find(views, chosen):
    times, paths = views["times"], views["paths"]
    return loads(
        times.values, times.told, paths.values, paths.told, chosen.within, chosen.threshold
    )


def main(arguments=None):
    return run(__doc__, ["times", "paths"], _find, _options, arguments)


if __name__ == "__main__":
    sys.exit(main())
