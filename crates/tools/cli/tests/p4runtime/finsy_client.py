"""Drives the switch with finsy as its users do.

Arguments: the server's address, a P4Info file, the program's source, and for mutual TLS a
folder with certificates.
"""

import asyncio
import sys
from pathlib import Path

import finsy as fy
from finsy.p4entity import P4ValueSetMember

address, p4info, source = sys.argv[1:4]
folder = [Path(folder) for folder in sys.argv[4:]]
FRAME = bytes.fromhex("00000000000a" "00000000000b" "1234") + bytes(46)


def l2(dst, port, **more):
    return fy.P4TableEntry(
        "l2",
        match=fy.Match({"hdr.ethernet.dst": dst}),
        action=fy.Action("send", port=port),
        **more,
    )


async def entities(sw):
    # Tables.
    await sw.write([+l2(1, 1), +l2(2, 2)])
    read = [entry async for entry in sw.read(fy.P4TableEntry("l2"))]
    assert len(read) == 2, read
    await sw.write([~l2(1, 3), -l2(2, 2)])
    read = [entry async for entry in sw.read(fy.P4TableEntry("l2"))]
    assert [entry.action.args["port"] for entry in read] == [3], read
    try:
        await sw.write([+l2(1, 1)])
    except fy.P4ClientError:
        pass
    else:
        raise AssertionError("a duplicate was taken")
    await sw.write(
        [
            +fy.P4TableEntry(
                "routes",
                match=fy.Match({"hdr.ipv4.dst": "10.0.0.0/8"}),
                action=fy.Action("send", port=1),
            ),
            +fy.P4TableEntry(
                "acl",
                match=fy.Match(
                    {
                        "hdr.ipv4.src": "10.0.0.0/255.0.0.0",
                        "hdr.ipv4.protocol": "6...17",
                        "hdr.ipv4.ttl": 64,
                    }
                ),
                action=fy.Action("drop"),
                priority=5,
            ),
        ]
    )

    # Registers, by index and as a whole.
    await sw.write([~fy.P4RegisterEntry("totals", index=3, data=0xABCD)])
    read = [entry async for entry in sw.read(fy.P4RegisterEntry("totals"))]
    assert len(read) == 16 and read[3].data == 0xABCD, read
    await sw.write([~fy.P4RegisterEntry("totals", data=7)])
    read = [entry async for entry in sw.read(fy.P4RegisterEntry("totals"))]
    assert {entry.data for entry in read} == {7}, read
    await sw.write([~fy.P4RegisterEntry("pairs", index=1, data={"mac": 5, "known": True})])
    read = [entry async for entry in sw.read(fy.P4RegisterEntry("pairs", index=1))]
    assert read[0].data == {"mac": 5, "known": True}, read

    # Counters and meters.
    data = fy.P4CounterData(byte_count=600, packet_count=5)
    await sw.write([~fy.P4CounterEntry("per_port", index=1, data=data)])
    read = [entry async for entry in sw.read(fy.P4CounterEntry("per_port"))]
    assert len(read) == 8 and read[1].packet_count == 5, read
    config = fy.P4MeterConfig(cir=1, cburst=2, pir=3, pburst=4)
    await sw.write([~fy.P4MeterEntry("limits", index=2, config=config)])
    read = [entry async for entry in sw.read(fy.P4MeterEntry("limits", index=2))]
    assert read[0].config.pir == 3, read

    # Action profiles.
    await sw.write(
        [
            +fy.P4ActionProfileMember("hops", member_id=1, action=fy.Action("via", port=1, mac=1)),
            +fy.P4ActionProfileMember("hops", member_id=2, action=fy.Action("via", port=2, mac=2)),
        ]
    )
    await sw.write(
        [
            +fy.P4ActionProfileGroup(
                "hops",
                group_id=1,
                max_size=4,
                members=[fy.P4Member(1, weight=1), fy.P4Member(2, weight=2)],
            )
        ]
    )
    await sw.write(
        [
            +fy.P4TableEntry(
                "balanced",
                match=fy.Match({"hdr.ethernet.type": 0x800}),
                action=fy.P4IndirectAction(group_id=1),
            )
        ]
    )
    read = [entry async for entry in sw.read(fy.P4ActionProfileGroup("hops"))]
    assert len(read) == 1 and len(read[0].members) == 2, read

    # Value sets, multicast groups and clone sessions.
    await sw.write(
        [~fy.P4ValueSetEntry("ip_types", members=[P4ValueSetMember(0x88B5)])]
    )
    read = [entry async for entry in sw.read(fy.P4ValueSetEntry("ip_types", members=[]))]
    assert len(read[0].members) == 1, read
    await sw.write([+fy.P4MulticastGroupEntry(1, replicas=[0, 1])])
    await sw.write([+fy.P4CloneSessionEntry(5, replicas=[510], packet_length_bytes=64)])
    read = [entry async for entry in sw.read(fy.P4MulticastGroupEntry())]
    assert len(read) == 1, read
    await sw.write([-fy.P4MulticastGroupEntry(1), -fy.P4CloneSessionEntry(5)])


async def streams(sw):
    default = fy.P4TableEntry("l2", is_default_action=True, action=fy.Action("send_to_controller"))
    await sw.write([~default])
    async with asyncio.timeout(10):
        packets = sw.read_packets()
        waiting = asyncio.create_task(anext(packets))
        await asyncio.sleep(0.2)
        await sw.write([fy.P4PacketOut(FRAME, egress_port=0, learn=0, pad=0)])
        packet = await waiting
    assert packet.payload[:14] == FRAME[:14], packet

    digest = fy.P4DigestEntry("seen_t", max_list_size=1, max_timeout_ns=1_000_000, ack_timeout_ns=10**9)
    await sw.write([+digest])
    async with asyncio.timeout(10):
        digests = sw.read_digests("seen_t")
        waiting = asyncio.create_task(anext(digests))
        await asyncio.sleep(0.2)
        await sw.write([fy.P4PacketOut(FRAME, egress_port=0, learn=1, pad=0)])
        seen = await waiting
    assert seen.data[0]["mac"] == 0xB, seen
    await sw.write([fy.P4DigestListAck("seen_t", seen.list_id)])

    async with asyncio.timeout(10):
        notices = sw.read_idle_timeouts()
        waiting = asyncio.create_task(anext(notices))
        await asyncio.sleep(0.2)
        await sw.write([+l2(0x77, 1, idle_timeout_ns=100_000_000)])
        notice = await waiting
    assert notice.table_entry, notice


def credentials():
    for path in folder:
        files = [path / name for name in ("root.pem", "client.pem", "client.key")]
        return fy.GRPCCredentialsTLS(cacert=files[0], cert=files[1], private_key=files[2])
    return None


async def main():
    options = fy.SwitchOptions(
        p4info=Path(p4info),
        p4blob=Path(source),
        p4force=True,
        channel_credentials=credentials(),
    )
    async with fy.Switch("s1", address, options) as sw:
        await entities(sw)
        await streams(sw)
    print("finsy: all done")


asyncio.run(main())
