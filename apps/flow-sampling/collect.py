"""Prints medium and large flows with the packets that were copied of them, from the views of `sizes` and
`samples`."""

import sys

from stateplane_sync.collector import Finding, above, error, run

# The greatest number stays.
_MOST = 0xFFFFFFFF


def classes(sizes, told, samples, samples_told, medium, large):
    """Places of medium and of large flows, the greater class first named. A place is certainly of a
    class if its size is beyond the class's begin; it may be of the next one."""
    bound = error(samples_told)
    for location, low, high, certain in above(sizes, told, medium - 1, most=_MOST):
        about = {"location": location}
        if bound is not None:
            about |= {
                "samples_low": int(samples[location]),
                "samples_high": int(samples[location]) + bound,
            }
        if high is None or high >= large:
            yield Finding("large", certain and low >= large, low, high, about)
        if low < large:
            yield Finding("medium", certain and high is not None and high < large, low, high, about)


def _options(parser):
    parser.add_argument("--medium", type=int, default=100, help="packets of a medium flow")
    parser.add_argument("--large", type=int, default=1000, help="packets of a large flow")


def _find(views, chosen):
    sizes, samples = views["sizes"], views["samples"]
    return classes(
        sizes.values, sizes.told, samples.values, samples.told, chosen.medium, chosen.large
    )


def main(arguments=None):
    return run(__doc__, ["sizes", "samples"], _find, _options, arguments)


if __name__ == "__main__":
    sys.exit(main())
