"""Uses the package stateplane_sync against an engine at 127.0.0.1:9560 that follows 1,024 locations of
`packets`, all 0."""

import uuid

import numpy

from stateplane_sync import Engine, Refused

with Engine(timeout=30) as engine:
    assert {group.name: group.locations for group in engine.groups()} == {
        "packets": 1024,
        "bytes": 1024,
    }
    view = engine.read("packets", fresh=True, bound=0)
    assert view.values.dtype == numpy.uint64 and view.values.shape == (1024,)
    assert view.told.bound == 0 and not view.values.any()

    expected = numpy.zeros(1024, dtype=numpy.uint64)
    change = {at: at + 1 for at in range(20)}
    assert engine.write("packets", change) == 1, "all of them at once"
    expected[:20] = range(1, 21)
    once = uuid.uuid4()
    assert engine.write("packets", {5: 10}, add=True, id=once) == 1
    assert engine.write("packets", {5: 10}, add=True, id=once) == 0, "it was done"
    expected[5] += 10
    assert engine.write_if("packets", 6, 7, 100) and not engine.write_if("packets", 6, 7, 100)
    expected[6] = 100
    assert (engine.read("packets", fresh=True, bound=0).values == expected).all()
    assert engine.read_value("packets", 6, fresh=True)[0] == 100

    changes = engine.subscribe("packets", interval=0.001, max_age_us=60_000_000)
    first = next(changes)
    assert first.all and first.met and (first.values == expected).all()

    window = engine.cut("packets", keep=True)
    assert window.number == 1 and (window.values == expected).all()
    kept = next(engine.windows("packets", after=0))
    assert kept.number == 1 and (kept.values == expected).all()
    assert (engine.fill("packets", 3).values == expected).all()
    engine.write("packets", {9: 1})
    seen = first.values.copy()
    while not (seen[9] == 1 and (numpy.delete(seen, 9) == 3).all()):
        change = next(changes)
        seen[change.locations] = change.values
    changes.close()

    every = numpy.arange(1024, dtype=numpy.uint64)
    engine.write_all("packets", every)
    assert (engine.read("packets", fresh=True, bound=0).values == every).all()

    totals = engine.totals("packets", fresh=True)
    assert totals.told.generation == 1
    assert totals.totals.dtype == numpy.uint64 and totals.totals.shape == (1024,)
    assert not totals.totals.any(), "nothing was counted, all of it was written"
    assert (totals.discontinuities[:9] > 0).all() and totals.discontinuities.dtype == numpy.uint32

    for wrong, code in [
        (lambda: engine.totals("colour"), "SYNC020"),
        (lambda: engine.read("colour"), "SYNC020"),
        (lambda: engine.write("packets", {1024: 1}), "SYNC012"),
        (lambda: engine.write_all("packets", every[1:]), "SYNC023"),
    ]:
        try:
            wrong()
        except Refused as refused:
            assert refused.code == code, refused
        else:
            raise AssertionError(code)

# Of several engines the one that leads is asked, wherever it is in the list.
for addresses in ["127.0.0.1:9561,127.0.0.1:9560", ["127.0.0.1:9560", "127.0.0.1:9561"]]:
    with Engine(addresses, timeout=30) as found:
        assert (found.read("packets", fresh=True, bound=0).values == every).all()
        assert next(found.windows("packets", after=0)).number == 1
with Engine("127.0.0.1:9561,127.0.0.1:9562", timeout=0.2) as none:
    try:
        none.read("packets")
    except Refused as refused:
        assert refused.code is None and not refused.unknown, refused
    else:
        raise AssertionError("nobody is there")

print("all of it")
