"""The parts that collectors share: promises as intervals, findings, and a command that prints them.

A collector is a function from values and what is told of them to findings, and a `main` that reads the
groups of an engine. Of a register that only grows the value is v to v + E, with E as the engine tells it.
Of an opaque register the engine tells that all but k locations are exact.
"""

import argparse
import json
import math
import sys
from dataclasses import dataclass, field
from typing import Callable, Iterator, Mapping, Optional, Sequence

import numpy

from . import Engine, Refused, Told, View

__all__ = [
    "EXACT",
    "Finding",
    "address",
    "addresses_that_end_in",
    "above",
    "error",
    "far",
    "run",
    "seen",
    "share_of_pairs",
    "threshold_option",
    "unseen",
]

EXACT = Told(
    bound=0,
    all_but=0,
    within=0,
    age_us=0,
    stamp=0,
    generation=0,
    incarnation=0,
    epoch=0,
    sweep_us=0,
)
"""The promise of a window: each value is what the register held at the cut."""


@dataclass(frozen=True)
class Finding:
    """A finding, with the interval of its number. `certain` is true if the whole interval, and else
    some of it, is above what was asked for; `high` is `None` if it is unbounded."""

    what: str
    certain: bool
    low: int
    high: Optional[int]
    about: Mapping[str, object] = field(default_factory=dict)

    def line(self) -> str:
        """The finding for people."""
        verdict = "certainly" if self.certain else "possibly"
        high = "any number" if self.high is None else self.high
        number = str(self.low) if self.low == self.high else f"{self.low} to {high}"
        about = ", ".join(f"{key} {value}" for key, value in self.about.items())
        return f"{self.what}: {verdict}, {number}" + (f" ({about})" if about else "")

    def json(self) -> str:
        """The finding for machines, an object on one line."""
        said = {
            "what": self.what,
            "verdict": "certainly" if self.certain else "possibly",
            "low": self.low,
            "high": self.high,
        }
        return json.dumps(said | dict(self.about))


def error(told: Told) -> Optional[int]:
    """E, by either promise; `None` if it is unbounded."""
    promises = [told.bound] if told.bound is not None else []
    if told.all_but == 0:
        promises.append(told.within)
    return min(promises, default=None)


def far(told: Told) -> Optional[int]:
    """How many locations at most differ from their registers; `None` if that is not told."""
    if error(told) == 0:
        return 0
    return told.all_but if told.within == 0 else None


def above(
    values: numpy.ndarray, told: Told, threshold: int, *, most: Optional[int] = None
) -> Iterator[tuple[int, int, Optional[int], bool]]:
    """Locations of a register that only grows which are above the threshold: location, low end, high
    end, and true if this is certain. If E is unbounded, those whose value was seen above it, and
    none of them certainly, since the register may have been set back. `most` is the greatest number
    of a register that stays there: a high end that reaches it is unbounded."""
    bound = error(told)
    values = numpy.asarray(values, dtype=numpy.uint64)
    lowest = max(threshold - (bound or 0), -1)
    found = numpy.ones(len(values), dtype=bool) if lowest < 0 else values > lowest
    for location in numpy.flatnonzero(found):
        value = int(values[location])
        if bound is None:
            yield int(location), 0, None, False
        else:
            high = value + bound
            if most is not None and high >= most:
                high = None
            yield int(location), value, high, value > threshold


def seen(
    what: str, count: int, most: int, differ: Optional[int], about: dict[str, object], places: str
) -> Finding:
    """A finding of a location of an opaque register: certain, with its count, if the view is exact; else of
    any count, as `differ` of the `places` may be others. `most` is the greatest count, which stays."""
    if differ == 0:
        return Finding(what, True, count, None if count == most else count, about)
    about[f"{places}_that_differ"] = "any" if differ is None else differ
    return Finding(what, False, 0, None, about)


def threshold_option(default: int, about: str) -> Callable[[argparse.ArgumentParser], None]:
    """The option `--threshold` of a command."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--threshold", type=int, default=default, help=about)

    return add


def address(number: int) -> str:
    """An IPv4 address as text."""
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def addresses_that_end_in(location: int, locations: int) -> str:
    """The addresses whose low bits are a location, of so many, which are a power of two."""
    return f"{address(location)}/{address(locations - 1)}"


def share_of_pairs(words: numpy.ndarray, told: Told) -> float:
    """The share of new pairs that a filter of three bits in one word of 64 takes for old ones; of
    words that may differ from the registers all."""
    differ = far(told)
    if differ is None:
        return 1.0
    if len(words) == 0:
        return 0.0
    octets = numpy.asarray(words, dtype="<u8").view(numpy.uint8).reshape(-1, 8)
    filled = numpy.unpackbits(octets, axis=1).sum(axis=1) / 64.0
    return min(float((filled**3).mean()) + differ / len(words), 1.0)


def unseen(counted: int, share: float, miss: float = 2.0**-20) -> Optional[int]:
    """How many that are not counted there are at most, but for a chance of `miss`, if `counted` are
    counted and each is left out with the probability `share`, independently of the others (Chernoff's
    bound); `None` if too many may be left out."""
    if share <= 0.0:
        return 0
    if share > 0.5:
        return None
    gone = 0
    while gone <= 4 * counted + 1000:
        more = gone + 1
        mean = (counted + more) * share
        if mean <= more and more * (1.0 + math.log(mean / more)) - mean <= math.log(miss):
            return gone
        gone += 1
    return None


def run(
    about: str,
    registers: Sequence[str],
    find: Callable[[dict[str, View], argparse.Namespace], Iterator[Finding]],
    options: Callable[[argparse.ArgumentParser], None],
    arguments: Optional[Sequence[str]] = None,
) -> int:
    """Reads the groups of an engine that follow the registers, and prints what is found. Gives the
    exit code: 0, or 1 if the engine refuses a request."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--engine", default="127.0.0.1:9560", help="address of the engine")
    parser.add_argument("--timeout", type=float, default=5.0, help="patience, in seconds")
    parser.add_argument("--json", action="store_true", help="print an object a line")
    parser.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="REGISTER=NAME",
        help="the engine's name of a register's group, unless it is the register's",
    )
    options(parser)
    chosen = parser.parse_args(arguments)
    names = dict(zip(registers, registers))
    for pair in chosen.group:
        register, equals, name = pair.partition("=")
        if not equals or register not in names:
            parser.error(f"--group {pair}: REGISTER=NAME with one of {', '.join(registers)}")
        names[register] = name
    try:
        with Engine(chosen.engine, timeout=chosen.timeout) as engine:
            views = {
                register: engine.read(name, fresh=True) for register, name in names.items()
            }
    except Refused as refused:
        print(f"error: {chosen.engine}: {refused}", file=sys.stderr)
        return 1
    for finding in find(views, chosen):
        print(finding.json() if chosen.json else finding.line())
    return 0
