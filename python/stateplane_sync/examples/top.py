"""Prints the locations with the greatest counts, each with the interval that it is in."""

import argparse

import numpy

from stateplane_sync import Engine


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("group")
    parser.add_argument("--engine", default="127.0.0.1:9560")
    parser.add_argument("--count", type=int, default=10)
    arguments = parser.parse_args()
    with Engine(arguments.engine) as engine:
        view = engine.read(arguments.group, fresh=True)
    greatest = numpy.argsort(view.values)[::-1][: arguments.count]
    for location in greatest:
        value = int(view.values[location])
        if view.told.bound is None:
            print(f"{location}: {value}, off by an unknown distance")
        else:
            print(f"{location}: {value} to {value + view.told.bound}")


if __name__ == "__main__":
    main()
