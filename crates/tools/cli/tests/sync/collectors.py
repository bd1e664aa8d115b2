"""Checks the collectors of the applications, `apps/*/collect.py` below the folder that is the first
argument: their findings from given values and promises, and, with a second argument, which is the
address of an engine whose group `packets` has location i at i, what their command prints.
"""

import contextlib
import dataclasses
import importlib.util
import io
import json
import random
import sys
import unittest.mock
from pathlib import Path

import numpy

from stateplane_sync import View
from stateplane_sync import collector as collector_module
from stateplane_sync import hashes
from stateplane_sync.collector import EXACT, above, error, far, share_of_pairs, unseen

sys.dont_write_bytecode = True
APPS = Path(sys.argv[1]) / "apps"
STALE = dataclasses.replace(EXACT, bound=None, all_but=3)
UNKNOWN = dataclasses.replace(EXACT, bound=None, all_but=3, within=5)


def within(bound):
    return dataclasses.replace(EXACT, bound=bound, all_but=1000, within=bound)


def collector(name):
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), APPS / name / "collect.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def u64(*values):
    return numpy.array(values, dtype=numpy.uint64)


def said(findings):
    return [(it.what, it.certain, it.low, it.high) for it in findings]


def promises():
    assert (error(EXACT), far(EXACT)) == (0, 0)
    assert (error(within(7)), far(within(7))) == (7, None)
    assert (error(STALE), far(STALE)) == (None, 3)
    assert (error(UNKNOWN), far(UNKNOWN)) == (None, None)
    assert error(dataclasses.replace(EXACT, bound=None, within=4)) == 4
    assert list(above(u64(5, 6, 7), EXACT, 6)) == [(2, 7, 7, True)]
    assert list(above(u64(5, 6, 7), within(1), 6)) == [(1, 6, 7, False), (2, 7, 8, True)]
    assert list(above(u64(0, 7), within(9), 6)) == [(0, 0, 9, False), (1, 7, 16, True)]
    assert list(above(u64(0, 7), UNKNOWN, 6)) == [(1, 0, None, False)]
    assert list(above(u64(5, 7), EXACT, 3, most=7)) == [(0, 5, 5, True), (1, 7, None, True)]
    draws = random.Random(3)
    for _ in range(50):
        bound, threshold = draws.randrange(20), draws.randrange(60)
        true = [draws.randrange(80) for _ in range(64)]
        seen = u64(*(max(value - draws.randrange(bound + 1), 0) for value in true))
        found = {it[0]: it for it in above(seen, within(bound), threshold)}
        for location, value in enumerate(true):
            assert value <= threshold or location in found
        for location, low, high, certain in found.values():
            assert low <= true[location] <= high
            assert not certain or true[location] > threshold
    assert share_of_pairs(u64(0, 2**64 - 1), EXACT) == 0.5
    assert share_of_pairs(u64(0xFFFFFFFF), EXACT) == 0.125
    assert share_of_pairs(u64(*[0] * 12), STALE) == 0.25
    assert share_of_pairs(u64(0), UNKNOWN) == 1.0
    assert unseen(100, 0.0) == 0 and unseen(100, 0.6) is None
    assert 0 < unseen(100, 0.01) < 20 < unseen(1000, 0.01) < 60


def names():
    assert hashes.name("WWW.Example.com.") == hashes.name("www.example.com")
    some = ["", "a", "ab", "a.b", "b.a", "aa", "a.a", "abc.d", "ab.cd"]
    assert len({hashes.name(name) for name in some}) == len(some)
    assert hashes.upper(1 << 63, 1) == 1 and hashes.coefficient(0) != hashes.coefficient(0, seed=1)


def dns_amplification(module):
    values = numpy.zeros(1 << 16, dtype=numpy.uint64)
    values[[0x0A02, 0x0A03]] = [101, 99]
    exact = list(module.victims(values, EXACT, 100))
    assert said(exact) == [("victim", True, 101, 101)]
    assert exact[0].about["addresses"] == "0.0.10.2/0.0.255.255"
    assert said(module.victims(values, within(2), 100)) == [
        ("victim", True, 101, 103),
        ("victim", False, 99, 101),
    ]


def dns_malicious_domain(module):
    place, tag = module.place("a.example", 16)
    values = numpy.zeros(16, dtype=numpy.uint64)
    values[place] = tag << 24 | 20
    empty = numpy.zeros(4, dtype=numpy.uint64)
    found = list(module.domains(values, EXACT, empty, EXACT, 16, ["b.example", "a.example"]))
    assert said(found) == [("domain", True, 20, 20)] and found[0].about["name"] == "a.example"
    assert not list(module.domains(values, EXACT, empty, EXACT, 20))
    # A filter that is half full has taken some for old ones.
    half = u64(0xFFFFFFFF, 0xFFFFFFFF)
    (finding,) = module.domains(values, EXACT, half, EXACT, 20)
    assert not finding.certain and finding.low == 20 and 30 < finding.high < 80
    (finding,) = module.domains(values, STALE, empty, EXACT, 16)
    assert (finding.certain, finding.low, finding.high) == (False, 0, None)
    assert finding.about["buckets_that_differ"] == 3
    values[place] |= 0xFFFFFF
    (finding,) = module.domains(values, EXACT, empty, EXACT, 16)
    assert finding.certain and finding.high is None
    (finding,) = module.addresses(u64(0, 0xC0000201 << 32 | 17), EXACT, empty, EXACT, 16)
    assert finding.about["address"] == "192.0.2.1" and finding.certain


def dns_ttl_change(module):
    place, tag = module.place("a.example", 1, 16)
    values, ttls = numpy.zeros(16, dtype=numpy.uint64), numpy.full(16, 300, dtype=numpy.uint64)
    values[place] = tag << 16 | 4
    (finding,) = module.changed(values, EXACT, ttls, within(20), 3, ["a.example"])
    assert (finding.certain, finding.low, finding.high) == (True, 4, 4)
    assert finding.about["name"] == "a.example A"
    assert (finding.about["ttl_low"], finding.about["ttl_high"]) == (280, 320)
    assert not list(module.changed(values, EXACT, ttls, EXACT, 4))
    values[place] = tag << 16 | 0xFFFF
    assert said(module.changed(values, EXACT, ttls, STALE, 3)) == [("ttl", True, 65535, None)]
    assert said(module.changed(values, STALE, ttls, STALE, 3)) == [("ttl", False, 0, None)]


def dns_tunnel(module):
    client = 0x0A090002 << 32
    values = u64(0, client | 51, client | 1 << 16 | 3, client | 50)
    found = list(module.suspects(values, EXACT, 50))
    assert said(found) == [("suspect", True, 51, 51), ("blocked", True, 3, 3)]
    assert found[0].about["client"] == "10.9.0.2"
    assert [it.certain for it in module.suspects(values, STALE, 50)] == [False, False]


def flowlet_switching(module):
    times = u64(0, 1000, 5000, 9000, 8900)
    paths = u64(0, 7 << 16 | 1, 7 << 16 | 1, 7 << 16 | 2, 7 << 16 | 1)
    found = list(module.loads(times, EXACT, paths, EXACT, 1000))
    assert said(found) == [("path", True, 1, 1), ("path", True, 1, 1)]
    assert (found[1].about["group"], found[1].about["member"]) == (7, 1)
    # 5,000 may be 8,000.
    assert said(module.loads(times, within(3000), paths, EXACT, 1000, 1)) == [("path", False, 1, 2)]
    assert said(module.loads(times, EXACT, paths, STALE, 1000)) == [
        ("path", False, 0, 4),
        ("path", False, 0, 4),
    ]
    assert said(module.loads(times, EXACT, paths, UNKNOWN, 1000))[0] == ("path", False, 0, None)


def affine_balancer(module):
    client = 0x0A090000 << 32
    server = 5 << 16 | 1
    values = u64(0, client | server, client | 1 << 32 | server, client | 2 << 32 | server + 1)
    found = list(module.servers(values, EXACT))
    assert said(found) == [("server", True, 2, 2), ("server", True, 1, 1)]
    assert found[1].about == {"service": 5, "server": 1}
    assert said(module.servers(values, STALE, 4)) == [("server", False, 0, 5)]


def flow_sampling(module):
    sizes, samples = u64(99, 100, 999, 1000, 0xFFFFFFFF), u64(1, 2, 3, 4, 5)
    find = lambda told: said(module.classes(sizes, told, samples, EXACT, 100, 1000))
    assert find(EXACT) == [
        ("medium", True, 100, 100),
        ("medium", True, 999, 999),
        ("large", True, 1000, 1000),
        ("large", True, 0xFFFFFFFF, None),
    ]
    assert find(within(1)) == [
        ("medium", False, 99, 100),
        ("medium", True, 100, 101),
        ("large", False, 999, 1000),
        ("medium", False, 999, 1000),
        ("large", True, 1000, 1001),
        ("large", True, 0xFFFFFFFF, None),
    ]


def flowbits(module):
    one, other = (0x0A090002, 4000), (0x0A000050, 80)
    assert module.place(one, other, 6, 256) == module.place(other, one, 6, 256)
    values = u64(0, 5 << 24 | 2 << 16 | 0x14, 6 << 24 | 0x04, 7 << 24 | 255 << 16)
    assert said(module.connections(values, EXACT, 0)) == [
        ("connection", True, 2, 2),
        ("connection", True, 255, None),
    ]
    found = list(module.connections(values, EXACT, 300, 0x04))
    assert [it.about["bits"] for it in found] == ["00010100", "00000100"]
    assert [it.certain for it in module.connections(values, STALE, 0)] == [False, False]


def ftp_monitor(module):
    values = u64(0, 4 << 2 | 1, 5 << 2 | 1, 6 << 2 | 3)
    assert said(module.channels(values, EXACT)) == [
        ("announced", True, 2, 2),
        ("open", False, 0, 0),
        ("closing", True, 1, 1),
    ]
    assert said(module.channels(values, STALE))[0] == ("announced", False, 0, 5)
    assert said(module.refused(u64(10, 11), within(1), 10)) == [
        ("refused", False, 10, 11),
        ("refused", True, 11, 12),
    ]


def elephant_flows(module):
    key = (0x0A090002, 0x0A000001, 4000 << 16 | 53, 17)
    check = hashes.upper(hashes.words(5, key[0], key[1]), 24)
    names = u64(0, 0, key[0] << 32 | key[1], 17 << 56 | key[2] << 24 | check, 1, 2)
    values = numpy.zeros(4 * 16 + 1, dtype=numpy.uint64)
    for row in range(4):
        values[row * 16 + hashes.upper(hashes.words(row, *key), 4)] = 1000 + row
    values[-1] = 1003
    (finding,) = module.elephants(values, EXACT, names, EXACT, 800)
    assert (finding.certain, finding.low, finding.high) == (True, 1000 - 2 * 1003 // 16, 1000)
    assert finding.about["flow"] == "10.9.0.2:4000>10.0.0.1:53/17"
    assert not list(module.elephants(values, EXACT, names, EXACT, 1000))
    (finding,) = module.elephants(values, within(80), names, STALE, 1000)
    assert (finding.certain, finding.high) == (False, 1080)
    assert finding.about["elements_that_differ"] == 3
    values[-1] = 0xFFFFFFFF
    (finding,) = module.elephants(values, EXACT, names, EXACT, 800)
    assert (finding.low, finding.high) == (0, 1000)


class Fake:
    """An engine of which each group has this value in 65 locations, exactly."""

    def __init__(self, value):
        self.values = numpy.full(65, value, dtype=numpy.uint64)

    def __call__(self, *_, **__):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def read(self, group, *, fresh):
        assert fresh
        # Names are pairs of elements.
        return View(EXACT, self.values[:64] if group == "elephants" else self.values)


def said_by(module, *arguments):
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = module.main(list(arguments))
    return code, output.getvalue().splitlines()


def fakes(module):
    """A command prints what it finds, for people and for machines, and nothing of empty registers."""
    with unittest.mock.patch.object(collector_module, "Engine", Fake(0)):
        code, lines = said_by(module)
        assert code == 0 and all("possibly, 0" in line for line in lines), lines
    with unittest.mock.patch.object(collector_module, "Engine", Fake((1 << 40) + 0x1F003)):
        code, lines = said_by(module)
        assert code == 0, lines
        code, objects = said_by(module, "--json")
        assert code == 0 and len(objects) == len(lines)
        assert all(json.loads(line)["what"] for line in objects)
        # The elements of a name are of two flows.
        assert (not lines) == (module.__name__ == "elephant_flows"), module.__name__


def printed(module, *arguments):
    return said_by(module, "--engine", sys.argv[2], "--timeout", "30", *arguments)


def commands():
    module = collector("dns-amplification")
    asked = ["--group", "dropped=packets", "--threshold", "1021"]
    code, lines = printed(module, *asked)
    assert code == 0 and len(lines) >= 2 and lines[-1].startswith("victim: certainly, 1023")
    code, lines = printed(module, *asked, "--json")
    found = {it["location"]: it for it in map(json.loads, lines)}
    assert code == 0 and {1022, 1023} <= found.keys()
    assert found[1022]["low"] == 1022 and found[1022]["verdict"] == "certainly"
    assert found[1022]["addresses"] == "0.0.3.254/0.0.3.255"
    code, lines = printed(module)
    assert code == 1 and "SYNC020" in lines[0], lines


promises()
names()
CASES = [
    affine_balancer,
    dns_amplification,
    dns_malicious_domain,
    dns_ttl_change,
    dns_tunnel,
    elephant_flows,
    flow_sampling,
    flowbits,
    flowlet_switching,
    ftp_monitor,
]
have = {path.parent.name.replace("-", "_") for path in APPS.glob("*/collect.py")}
assert have == {case.__name__ for case in CASES}, have
for case in CASES:
    module = collector(case.__name__.replace("_", "-"))
    case(module)
    fakes(module)
if len(sys.argv) > 2:
    commands()
print("all collectors")
