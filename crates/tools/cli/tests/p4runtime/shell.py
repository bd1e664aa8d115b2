"""Drives the switch with p4runtime-shell as its users do.

Arguments: the server's address, a P4Info file, the program's source, and for mutual TLS a
folder with certificates.
"""

import sys

import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeException, P4RuntimeWriteException, SSLOptions

address, p4info, source = sys.argv[1:4]
tls = None
if sys.argv[4:]:
    files = [f"{sys.argv[4]}/{name}" for name in ("root.pem", "client.pem", "client.key")]
    anonymous = SSLOptions(False, files[0])
    try:
        sh.setup(device_id=1, grpc_addr=address, election_id=(0, 1), ssl_options=anonymous)
    except (P4RuntimeException, SystemExit):
        pass
    else:
        raise AssertionError("a client without a certificate was served")
    tls = SSLOptions(False, *files)

sh.setup(
    device_id=1,
    grpc_addr=address,
    election_id=(0, 1),
    config=sh.FwdPipeConfig(p4info, source),
    verbose=False,
    ssl_options=tls,
)


def refused(code, write):
    try:
        write()
    except P4RuntimeWriteException as error:
        codes = [one.canonical_code for _, one in error.errors]
        assert code in codes, (code, codes)
        return
    raise AssertionError("the switch took what is wrong")


# Exact entries, and an action's parameter.
entry = sh.TableEntry("l2")(action="send")
entry.match["hdr.ethernet.dst"] = "00:00:00:00:00:01"
entry.action["port"] = "3"
entry.insert()
refused(6, entry.insert)  # ALREADY_EXISTS
entry.action["port"] = "4"
entry.modify()
read = list(sh.TableEntry("l2").read())
assert len(read) == 1, read
assert read[0].action["port"] == b"\x04" or "4" in str(read[0].action), read[0]
entry.delete()
refused(5, entry.delete)  # NOT_FOUND
assert list(sh.TableEntry("l2").read()) == []

# Prefixes with a direct counter.
route = sh.TableEntry("routes")(action="send")
route.match["hdr.ipv4.dst"] = "10.0.0.0/8"
route.action["port"] = "1"
route.insert()
hits = sh.DirectCounterEntry("route_hits")
hits.table_entry.match["hdr.ipv4.dst"] = "10.0.0.0/8"
counted = list(hits.read())
assert len(counted) == 1 and counted[0].packet_count == 0, counted

# Masks, ranges and optional values, by priority, with a direct meter.
acl = sh.TableEntry("acl")(action="meter_it")
acl.match["hdr.ipv4.src"] = "10.0.0.0&&&255.255.0.0"
acl.match["hdr.ipv4.protocol"] = "6..17"
acl.match["hdr.ipv4.ttl"] = "64"
acl.action["port"] = "2"
refused(3, acl.insert)  # INVALID_ARGUMENT: no priority
acl.priority = 7
acl.insert()
read = list(sh.TableEntry("acl").read())
assert len(read) == 1 and read[0].priority == 7, read
speed = sh.DirectMeterEntry("speed")
speed.table_entry.match["hdr.ipv4.src"] = "10.0.0.0&&&255.255.0.0"
speed.table_entry.match["hdr.ipv4.protocol"] = "6..17"
speed.table_entry.match["hdr.ipv4.ttl"] = "64"
speed.table_entry.priority = 7
speed.cir, speed.cburst, speed.pir, speed.pburst = 10, 20, 30, 40
speed.modify()
read = list(speed.read())
assert read[0].cir == 10 and read[0].pburst == 40, read

# Default and constant entries.
default = sh.TableEntry("l2")(action="drop", is_default=True)
default.modify()
fixed = list(sh.TableEntry("fixed").read())
assert len(fixed) == 1, fixed
wrong = sh.TableEntry("fixed")(action="drop")
wrong.match["hdr.ethernet.type"] = "0x1"
refused(7, wrong.insert)  # PERMISSION_DENIED

# Members, groups and one-shot sets.
for number in (1, 2):
    member = sh.ActionProfileMember("hops")(member_id=number, action="via")
    member.action["port"] = str(number)
    member.action["mac"] = "00:00:00:00:00:0%d" % number
    member.insert()
group = sh.ActionProfileGroup("hops")(group_id=1)
group.max_size = 4
group.add(1, 1)
group.add(2, 3)
group.insert()
read = list(sh.ActionProfileGroup("hops").read())
assert len(read) == 1 and len(read[0].members) == 2, read
balanced = sh.TableEntry("balanced")
balanced.match["hdr.ethernet.type"] = "0x800"
balanced.group_id = 1
balanced.insert()
refused(9, group.delete)  # FAILED_PRECONDITION: in use
oneshot = sh.TableEntry("balanced")
oneshot.match["hdr.ethernet.type"] = "0x86dd"
via = sh.Action("via")
via["port"], via["mac"] = "5", "00:00:00:00:00:05"
actions = sh.Oneshot("balanced")
actions.add(via, weight=2, watch_port=b"\x00")
oneshot.oneshot = actions
oneshot.insert()
assert len(list(sh.TableEntry("balanced").read())) == 2
balanced.delete()
group.delete()

# Indirect counters and meters.
counter = sh.CounterEntry("per_port")
counter.index = 1
counter.packet_count, counter.byte_count = 5, 600
counter.modify()
read = list(sh.CounterEntry("per_port").read())
assert len(read) == 8 and read[1].byte_count == 600, read
meter = sh.MeterEntry("limits")
meter.index = 2
meter.cir, meter.cburst, meter.pir, meter.pburst = 1, 2, 3, 4
meter.modify()
read = list(meter.read())
assert read[0].pir == 3, read

# Replication.
multicast = sh.MulticastGroupEntry(1)
multicast.add(0, 1)
multicast.add(0, 2)
multicast.insert()
read = list(sh.MulticastGroupEntry().read())
assert len(read) == 1 and len(read[0].replicas) == 2, read
multicast.delete()
session = sh.CloneSessionEntry(5)
session.add(510, 1)
session.packet_length_bytes = 64
session.insert()
read = list(sh.CloneSessionEntry().read())
assert len(read) == 1, read
session.delete()

# Packets.
packets = sh.PacketIn()
out = sh.PacketOut()
out.payload = bytes.fromhex("00000000000a" "00000000000b" "1234") + bytes(46)
out.metadata["egress_port"] = "0"
out.metadata["learn"] = "0"
out.metadata["pad"] = "0"
default = sh.TableEntry("l2")(action="send_to_controller", is_default=True)
default.modify()
out.send()
received = []
packets.sniff(lambda packet: received.append(packet), timeout=2)
assert len(received) == 1, received
payload = received[0].packet.payload
assert payload[:14] == bytes.fromhex("00000000000a00000000000b1234"), payload

# Digests.
digest = sh.DigestEntry("seen_t")
digest.max_timeout_ns = 10_000_000
digest.max_list_size = 2
digest.ack_timeout_ns = 1_000_000_000
digest.insert()
out.metadata["learn"] = "1"
out.send()
lists = []
digests = sh.DigestList()
digests.sniff(lambda one: lists.append(one), timeout=2)
assert len(lists) == 1, lists
members = lists[0].digest.data[0].struct.members
assert members[0].bitstring == b"\x0b", members
digest.delete()

# Idle entries.
idle = sh.TableEntry("l2")(action="send")
idle.match["hdr.ethernet.dst"] = "00:00:00:00:00:77"
idle.action["port"] = "1"
idle.idle_timeout_ns = 100_000_000
idle.insert()
noticed = []
notices = sh.IdleTimeoutNotification()
notices.sniff(lambda one: noticed.append(one), timeout=4)
assert noticed, "no notification of an idle entry"

sh.teardown()
print("p4runtime-shell: all done")
