"""Prints the addresses that DNS responses without a query were sent to, from the view of `dropped`."""

import sys

from stateplane_sync.collector import Finding, above, addresses_that_end_in, run, threshold_option


def victims(values, told, threshold):
    """Addresses with more dropped responses than the threshold, by their low bits."""
    for location, low, high, certain in above(values, told, threshold, most=0xFFFFFFFF):
        where = addresses_that_end_in(location, len(values))
        yield Finding("victim", certain, low, high, {"location": location, "addresses": where})


def main(arguments=None):
    return run(
        __doc__,
        ["dropped"],
        lambda views, chosen: victims(
            views["dropped"].values, views["dropped"].told, chosen.threshold
        ),
        threshold_option(100, "responses that are still no attack"),
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
