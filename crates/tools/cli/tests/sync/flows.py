"""Uses the package stateplane_sync against an engine, whose address is the argument, that follows flows
`counts`: one in shard 2, with class 1 and the state 3 in 8 bytes, and snapshot 1 of the arrays `sketch` of
switch 1."""

import sys

from stateplane_sync import Engine, Refused

KEY = bytes([1] + 14 * [0] + [1])


def number(value):
    return value.to_bytes(8, "big")


with Engine(sys.argv[1], timeout=30) as engine:
    assert engine.followed_flows() == ["counts"] and engine.groups() == []
    flows = engine.flows("counts", class_=1, fresh=True)
    assert list(flows) == [KEY] and flows.age_us < 60_000_000
    flow = flows[KEY]
    assert (flow.shard, flow.state, flow.sequence) == (2, number(3), 2), flow
    assert engine.flows("counts", class_=2) == {}
    snapshots = engine.snapshots("sketch")
    assert snapshots.merged.tolist() == [[5, 10], [6, 12]]
    assert [(it.switch, it.incarnation, it.number) for it in snapshots.each] == [(1, 7, 1)]
    assert snapshots.views == []
    first = next(engine.follow_snapshots("sketch"))
    assert first.number == 1 and (first.values == snapshots.merged).all()
    changes = engine.subscribe_flows("counts", class_=1, interval=0.001)
    first = next(changes)
    assert first.all and first.met and first.gone == [] and len(first.flows) == 1

    assert engine.set_flow("counts", KEY, number(5))
    assert not engine.set_flow("counts", KEY, number(6), expected=number(4))
    assert engine.set_flow("counts", KEY, number(6), expected=number(5))
    assert engine.add_flow("counts", KEY, 10) == number(16)
    assert engine.add_flow("counts", KEY, -1, at=4, length=4, shard=2) == number(15)
    flow = engine.flow("counts", KEY, fresh=True)
    assert flow.state == number(15) and flow.sequence == 6, flow
    assert engine.flow("counts", KEY, shard=1) is None
    assert engine.flow("counts", bytes(16)) is None
    seen = first.flows[0]
    while seen.state != number(15):
        change = next(changes)
        assert not change.all and change.gone == []
        seen = change.flows[0]
    changes.close()

    for wrong, code in [
        (lambda: engine.flows("colour"), "SYNC020"),
        (lambda: engine.set_flow("counts", bytes(16), number(1)), "SYNC031"),
        (lambda: engine.set_flow("counts", KEY, b""), "SYNC033"),
        (lambda: engine.set_flow("counts", b"", number(1)), "SYNC023"),
    ]:
        try:
            wrong()
        except Refused as refused:
            assert refused.code == code and not refused.unknown, refused
        else:
            raise AssertionError(code)

print("all of it")
