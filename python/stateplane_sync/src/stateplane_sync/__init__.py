"""Views of data-plane state, with a bound that is true.

`Engine` is a client of `stateplane engine`. Values come as numpy arrays of 64-bit unsigned integers that
share the bytes of the message they came in.
"""

import time
import uuid
from dataclasses import dataclass
from typing import Iterator, Mapping, Optional, Sequence, Union

import grpc
import numpy

from ._generated import flows_pb2, flows_pb2_grpc, view_pb2, view_pb2_grpc

__all__ = [
    "ArraysView",
    "Change",
    "Engine",
    "Flow",
    "Flows",
    "FlowsChange",
    "Group",
    "Refused",
    "Snapshot",
    "Snapshots",
    "Told",
    "View",
    "Window",
]

# A million flows with states of a hundred bytes.
_LONGEST = 256 << 20

# A view of 2¹⁶ values comes in one frame of HTTP/2.
_FRAME = 1 << 20

# Code of the refusal of an engine that stands by: nothing was done.
_STANDBY = "SYNC027"

# Seconds for one of several engines to say that it leads, and before all are asked again.
_LOOK = 1.0
_PAUSE = 0.05


class Refused(Exception):
    """The engine refuses a request.

    `code` is the engine's, which `stateplane explain` knows; `None` if the engine was not reached.
    `unknown` is true if a change may have been made. `leader` is the address of the engine that leads, if
    one that stands by refused and knows it.
    """

    def __init__(self, error: grpc.RpcError):
        metadata = dict(error.trailing_metadata() or ())
        self.code: Optional[str] = metadata.get("stateplane-code")
        self.status: grpc.StatusCode = error.code()
        self.unknown: bool = self.status == grpc.StatusCode.UNKNOWN
        self.leader: Optional[str] = metadata.get("stateplane-leader")
        super().__init__(f"[{self.code or self.status.name}] {error.details()}")


@dataclass(frozen=True)
class Told:
    """Promise about a view: no location is farther than `bound` from its register at a moment at most
    `age_us` before the answer (`None`: unbounded), and all but `all_but` are within `within`."""

    bound: Optional[int]
    all_but: int
    within: int
    age_us: int
    stamp: int
    generation: int
    incarnation: int
    epoch: int
    sweep_us: int


@dataclass(frozen=True)
class Group:
    """A group of registers that the engine follows; `told` is `None` while its view is incomplete."""

    name: str
    locations: int
    told: Optional[Told]
    last_window: int
    fenced: bool


@dataclass(frozen=True)
class View:
    """Values by location, and what is promised of them."""

    told: Told
    values: numpy.ndarray


@dataclass(frozen=True)
class Totals:
    """What counters have counted by location, over widths and resets, and what is promised of the view
    that this is of. No total goes back while an engine runs. Between two readings with the
    same number of a location in `discontinuities`, 0 before the first, its total went on by what was
    counted between them."""

    told: Told
    totals: numpy.ndarray
    discontinuities: numpy.ndarray


@dataclass(frozen=True)
class Window:
    """What all locations held at a cut. `number` is its place among the windows that are kept, from 1;
    0 if it is not kept."""

    number: int
    incarnation: int
    epoch: int
    values: numpy.ndarray


@dataclass(frozen=True)
class Change:
    """Locations that changed and their values; with `all` true, all that are subscribed to. `met` is
    true if the view is within the subscription's limits; `told` is `None` while it is incomplete."""

    told: Optional[Told]
    met: bool
    all: bool
    locations: numpy.ndarray
    values: numpy.ndarray


@dataclass(frozen=True)
class Flow:
    """A flow as a store's chain has it. States of a flow are ordered by `(epoch, sequence)`; `lease` is
    "nobody", "owner" or "readers"."""

    shard: int
    key: bytes
    state: bytes
    epoch: int
    sequence: int
    lease: str


class Flows(dict):
    """Flows by key; where several shards have a flow with one key, `all` has each of them.

    At a moment at most `age_us` before the answer each flow of a chain had exactly the state that it has
    here.
    """

    def __init__(self, age_us: int, flows: Sequence[Flow]):
        super().__init__((flow.key, flow) for flow in flows)
        self.age_us = age_us
        self.all = list(flows)


@dataclass(frozen=True)
class FlowsChange:
    """Flows that changed, all of them with `all` true, and shard and key of those that are gone. `met` is
    true if the view is within the subscription's limits; `age_us` is `None` while it is incomplete."""

    age_us: Optional[int]
    met: bool
    all: bool
    flows: list[Flow]
    gone: list[tuple[int, bytes]]


@dataclass(frozen=True)
class Snapshot:
    """All elements of the arrays of a program in bounded inconsistency, at one moment between two packets of
    a switch. `values` has a row for each element and a column for each array; `number` is counted by each
    start of a switch from 1."""

    switch: int
    incarnation: int
    number: int
    values: numpy.ndarray


@dataclass(frozen=True)
class ArraysView:
    """The view of the arrays of one start of a switch, the present or the last one. `values` has a row for
    each element and a column for each array; `promises` has bound and age in µs of each array, None of one whose
    view was not complete. A bound of None is unbounded."""

    switch: int
    incarnation: int
    promises: list[Optional[tuple[Optional[int], int]]]
    values: numpy.ndarray


@dataclass(frozen=True)
class Snapshots:
    """The newest complete snapshot of each start of each switch, what the engine has in view of each, and all of
    them merged as the engine's file says, of each start the newer value. A snapshot that was whole in the store
    `age_us` before the answer is here, or a later one."""

    age_us: int
    merged: numpy.ndarray
    each: list[Snapshot]
    views: list[ArraysView]


def _promise(promise) -> Optional[tuple[Optional[int], int]]:
    if not promise.HasField("age_us"):
        return None
    return (promise.bound if promise.HasField("bound") else None, promise.age_us)


def _rows(packed: bytes, arrays: int) -> numpy.ndarray:
    return _values(packed).reshape(-1, arrays)


_LEASES = {
    flows_pb2.LEASE_NOBODY: "nobody",
    flows_pb2.LEASE_OWNER: "owner",
    flows_pb2.LEASE_READERS: "readers",
}


def _flow(message) -> Flow:
    return Flow(
        message.shard,
        message.key,
        message.state,
        message.epoch,
        message.sequence,
        _LEASES.get(message.lease, "nobody"),
    )


def _flows_limits(fresh: bool, max_age_us: Optional[int]):
    limits = flows_pb2.FlowsLimits(fresh=fresh)
    if max_age_us is not None:
        limits.max_age_us = max_age_us
    return limits


def _values(packed: bytes) -> numpy.ndarray:
    return numpy.frombuffer(packed, dtype="<u8")


def _packed_values(values) -> bytes:
    return numpy.asarray(values, dtype="<u8").tobytes()


def _packed_locations(locations) -> bytes:
    return numpy.asarray(locations, dtype="<u4").tobytes()


def _told(message) -> Optional[Told]:
    if message is None:
        return None
    return Told(
        bound=message.bound if message.HasField("bound") else None,
        all_but=message.all_but,
        within=message.within,
        age_us=message.age_us,
        stamp=message.stamp,
        generation=message.generation,
        incarnation=message.incarnation,
        epoch=message.epoch,
        sweep_us=message.sweep_us,
    )


def _told_of(message) -> Optional[Told]:
    return _told(message.told) if message.HasField("told") else None


def _limits(fresh: bool, bound: Optional[int], max_age_us: Optional[int]):
    limits = view_pb2.Limits(fresh=fresh)
    if bound is not None:
        limits.bound = bound
    if max_age_us is not None:
        limits.max_age_us = max_age_us
    return limits


def _window(message) -> Window:
    return Window(message.number, message.incarnation, message.epoch, _values(message.values))


class _Stubs:
    """The services of an engine."""

    def __init__(self, channel: grpc.Channel):
        self.view = view_pb2_grpc.ViewStub(channel)
        self.flows = flows_pb2_grpc.FlowsStub(channel)


class Engine:
    """A connection to an engine. `timeout` is the patience of requests, in seconds.

    Of engines that stand by for each other `address` has all, as a sequence or with commas between, and
    the one that leads is asked. Requests that the old one has not begun, reads, changes with an id and streams
    go to the next when the leader changes; another change that was under way is `Refused`, and `unknown`.
    """

    def __init__(
        self,
        address: Union[str, Sequence[str]] = "127.0.0.1:9560",
        *,
        timeout: float = 5.0,
        credentials: Optional[grpc.ChannelCredentials] = None,
    ):
        options = [
            ("grpc.max_receive_message_length", _LONGEST),
            ("grpc.max_send_message_length", _LONGEST),
            ("grpc.http2.max_frame_size", _FRAME),
        ]
        addresses = address.split(",") if isinstance(address, str) else list(address)
        if not addresses:
            raise ValueError("an engine has at least one address")
        if credentials is None:
            self._channels = [grpc.insecure_channel(one, options) for one in addresses]
        else:
            self._channels = [grpc.secure_channel(one, credentials, options) for one in addresses]
        self._stubs = [_Stubs(channel) for channel in self._channels]
        # The one that is asked; `None` while none of several is known to lead.
        self._leader = self._stubs[0] if len(self._stubs) == 1 else None
        self._timeout = timeout
        self._patience_us = int(timeout * 1e6)

    def close(self) -> None:
        """Ends the connection."""
        for channel in self._channels:
            channel.close()

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _stub(self, deadline: float):
        """The engine that leads; of several they are asked in turn until the deadline."""
        while self._leader is None:
            for stub in self._stubs:
                try:
                    stub.view.Groups(view_pb2.GroupsRequest(), timeout=_LOOK)
                    self._leader = stub
                    break
                except grpc.RpcError as error:
                    if time.monotonic() > deadline:
                        raise Refused(error) from None
            else:
                time.sleep(_PAUSE)
        return self._leader

    def _moves(self, error: grpc.RpcError, is_repeatable: bool) -> bool:
        """True if a request that ended so goes to another engine."""
        if len(self._stubs) == 1:
            return False
        refused = Refused(error)
        lost = refused.code is None and refused.status in (
            grpc.StatusCode.UNAVAILABLE,
            grpc.StatusCode.UNKNOWN,
        )
        if lost or refused.code == _STANDBY:
            self._leader = None
        return refused.code == _STANDBY or (lost and is_repeatable)

    def _call(self, name: str, request, is_repeatable: bool = True, service: str = "view"):
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                return getattr(getattr(self._stub(deadline), service), name)(request)
            except grpc.RpcError as error:
                if not self._moves(error, is_repeatable) or time.monotonic() > deadline:
                    refused = Refused(error)
                    # A connection that broke does not tell whether a change was made.
                    refused.unknown |= not is_repeatable and refused.code is None
                    raise refused from None

    def _stream(self, name: str, request, taken=lambda message: None, service: str = "view"):
        """Messages of a stream, which goes on at another engine; `taken` is called with each."""
        while True:
            stub = getattr(self._stub(time.monotonic() + self._timeout), service)
            messages = getattr(stub, name)(request)
            try:
                for message in messages:
                    taken(message)
                    yield message
                return
            except grpc.RpcError as error:
                if not self._moves(error, True):
                    raise Refused(error) from None
            finally:
                messages.cancel()

    def groups(self) -> list[Group]:
        """The groups that the engine follows."""
        said = self._call("Groups", view_pb2.GroupsRequest())
        return [
            Group(it.name, it.locations, _told_of(it), it.last_window, it.fenced)
            for it in said.groups
        ]

    def _read_all(self, name: str, group: str, limits):
        request = view_pb2.ReadAllValuesRequest(
            group=group, limits=limits, patience_us=self._patience_us
        )
        return self._call(name, request)

    def read(
        self,
        group: str,
        *,
        fresh: bool = False,
        bound: Optional[int] = None,
        max_age_us: Optional[int] = None,
    ) -> View:
        """READ_ALL_VALUES: the view of a group, once it is within the limits: `fresh`, of a moment
        after the request; the greatest bound; the greatest age."""
        said = self._read_all("ReadAllValues", group, _limits(fresh, bound, max_age_us))
        return View(_told(said.told), _values(said.values))

    def totals(
        self,
        group: str,
        *,
        fresh: bool = False,
        bound: Optional[int] = None,
        max_age_us: Optional[int] = None,
    ) -> Totals:
        """What the counters of a group have counted, once its view is within the limits, which are those
        of `read`. The group has `counter_bits` in the engine's file."""
        said = self._read_all("ReadTotals", group, _limits(fresh, bound, max_age_us))
        breaks = numpy.frombuffer(said.discontinuities, dtype="<u4")
        return Totals(_told(said.told), _values(said.totals), breaks)

    def read_value(self, group: str, location: int, *, fresh: bool = False) -> tuple[int, Told]:
        """READ_VALUE: the value of one location, and what is promised of it."""
        request = view_pb2.ReadValueRequest(
            group=group,
            location=location,
            limits=_limits(fresh, None, None),
            patience_us=self._patience_us,
        )
        said = self._call("ReadValue", request)
        return said.value, _told(said.told)

    def write(
        self,
        group: str,
        values: Mapping[int, int],
        *,
        add: bool = False,
        id: Optional[uuid.UUID] = None,
    ) -> int:
        """Sets locations, all at once, or adds to them; gives the number of pieces in which they changed,
        1 if all did at once. With an id the change is made once, however often it is asked for."""
        request = view_pb2.WriteValuesRequest(
            group=group,
            locations=_packed_locations(list(values.keys())),
            values=_packed_values(list(values.values())),
            operation=view_pb2.ADD if add else view_pb2.SET,
            id=id.bytes if id else b"",
            patience_us=self._patience_us,
        )
        return self._call("WriteValues", request, id is not None).pieces

    def write_if(
        self,
        group: str,
        location: int,
        expected: int,
        value: int,
        *,
        id: Optional[uuid.UUID] = None,
    ) -> bool:
        """Sets a location if it has the expected value; false if it has another."""
        request = view_pb2.WriteValueRequest(
            group=group,
            location=location,
            value=value,
            operation=view_pb2.SET_IF_EQUAL,
            expected=expected,
            id=id.bytes if id else b"",
            patience_us=self._patience_us,
        )
        return self._call("WriteValue", request, id is not None).done

    def write_all(self, group: str, values, *, id: Optional[uuid.UUID] = None) -> None:
        """WRITE_ALL_VALUES: a value for each location, all of them at once."""
        request = view_pb2.WriteAllValuesRequest(
            group=group,
            values=_packed_values(values),
            id=id.bytes if id else b"",
            patience_us=self._patience_us,
        )
        self._call("WriteAllValues", request, id is not None)

    def fill(self, group: str, value: int) -> Window:
        """Gives all locations one value, at once; what they held is the window."""
        return self.cut(group, fill=value)

    def cut(self, group: str, *, fill: Optional[int] = None, keep: bool = False) -> Window:
        """CUT: what all locations hold at one moment, at which they may be filled."""
        request = view_pb2.CutRequest(group=group, keep=keep, patience_us=self._patience_us)
        if fill is not None:
            request.fill = fill
        return _window(self._call("Cut", request, False))

    def windows(self, group: str, *, after: int = 0) -> Iterator[Window]:
        """The kept windows behind number `after`, then those that come, each once."""
        request = view_pb2.WindowsRequest(group=group, after=after)

        def taken(message) -> None:
            request.after = message.number

        for message in self._stream("Windows", request, taken):
            yield _window(message)

    def subscribe(
        self,
        group: str,
        *,
        locations: Sequence[int] = (),
        bound: Optional[int] = None,
        max_age_us: Optional[int] = None,
        interval: float = 0.1,
        heartbeat: float = 0.0,
    ) -> Iterator[Change]:
        """SUBSCRIBE: all values, then those that change, and word when the view is not within the
        limits. Times are in seconds."""
        request = view_pb2.SubscribeRequest(
            group=group,
            limits=_limits(False, bound, max_age_us),
            locations=_packed_locations(list(locations)),
            interval_us=int(interval * 1e6),
            heartbeat_us=int(heartbeat * 1e6),
        )
        for message in self._stream("Subscribe", request):
            values = _values(message.values)
            places = numpy.frombuffer(message.locations, dtype="<u4")
            if len(places) != len(values):
                places = numpy.arange(len(values), dtype="<u4")
            yield Change(_told_of(message), message.met, message.all, places, values)

    def followed_flows(self) -> list[str]:
        """Names of the flows that the engine follows in stores."""
        said = self._call("List", flows_pb2.ListFlowsRequest(), service="flows")
        return [it.name for it in said.flows]

    def _flows(self, name, key, class_, fresh, max_age_us) -> Flows:
        request = flows_pb2.ReadFlowsRequest(
            name=name,
            key=key,
            limits=_flows_limits(fresh, max_age_us),
            patience_us=self._patience_us,
        )
        if class_ is not None:
            setattr(request, "class", class_)
        said = self._call("Read", request, service="flows")
        return Flows(said.told.age_us, [_flow(flow) for flow in said.flows])

    def flows(
        self,
        name: str,
        *,
        class_: Optional[int] = None,
        fresh: bool = False,
        max_age_us: Optional[int] = None,
    ) -> Flows:
        """The flows of a name by key, all or those of a class, once their view is within the limits:
        `fresh`, with all that was acknowledged before the request; the greatest age."""
        return self._flows(name, b"", class_, fresh, max_age_us)

    def flow(
        self,
        name: str,
        key: bytes,
        *,
        shard: Optional[int] = None,
        fresh: bool = False,
        max_age_us: Optional[int] = None,
    ) -> Optional[Flow]:
        """The flow with a key of 16 bytes, of the first shard that has one unless `shard` is given;
        `None` if there is none."""
        if len(key) != 16:
            raise ValueError("a key has 16 bytes")
        flows = self._flows(name, key, None, fresh, max_age_us).all
        return next((flow for flow in flows if shard in (None, flow.shard)), None)

    def _write_flow(self, name: str, key: bytes, shard: Optional[int], **change):
        request = flows_pb2.WriteFlowRequest(
            name=name, key=key, patience_us=self._patience_us, **change
        )
        if shard is not None:
            request.shard = shard
        return self._call("Write", request, False, service="flows")

    def set_flow(
        self,
        name: str,
        key: bytes,
        state: bytes,
        *,
        expected: Optional[bytes] = None,
        shard: Optional[int] = None,
    ) -> bool:
        """Gives a flow another state, as its owner would: the engine takes the lease, writes, and gives it
        up. With `expected` only if the flow has that state; false if it has another."""
        if expected is None:
            return self._write_flow(name, key, shard, set=state).done
        change = flows_pb2.SetIfEqual(expected=expected, state=state)
        return self._write_flow(name, key, shard, set_if_equal=change).done

    def add_flow(
        self,
        name: str,
        key: bytes,
        amount: int,
        *,
        at: int = 0,
        length: int = 0,
        shard: Optional[int] = None,
    ) -> bytes:
        """Adds to the big-endian number of `length` bytes from byte `at` of a flow's state on, modulo its
        width, and gives the state. A length of 0 goes to the end of the state; the amount may be
        negative."""
        change = flows_pb2.AddToState(at=at, length=length, amount=amount % (1 << 64))
        return self._write_flow(name, key, shard, add=change).state

    def snapshots(self, name: str) -> Snapshots:
        """Arrays of which a store has snapshots, those of dead switches too."""
        request = flows_pb2.ReadSnapshotsRequest(name=name)
        said = self._call("ReadSnapshots", request, service="flows")
        each = [
            Snapshot(it.switch, it.incarnation, it.number, _rows(it.values, said.arrays))
            for it in said.snapshots
        ]
        views = [
            ArraysView(
                it.switch,
                it.incarnation,
                [_promise(promise) for promise in it.promises],
                _rows(it.values, said.arrays),
            )
            for it in said.views
        ]
        return Snapshots(said.told.age_us, _rows(said.merged, said.arrays), each, views)

    def follow_snapshots(
        self, name: str, *, after: Sequence[tuple[int, int, int]] = ()
    ) -> Iterator[Snapshot]:
        """Each complete snapshot that comes, once, of each start of a switch in the order of their numbers.
        `after` has switch, incarnation and number of the last ones that are known."""
        arrays = self.snapshots(name).merged.shape[1]
        request = flows_pb2.SnapshotsRequest(name=name)
        for switch, incarnation, number in after:
            request.after.add(switch=switch, incarnation=incarnation, number=number)

        def taken(message) -> None:
            last = (message.switch, message.incarnation)
            others = [it for it in request.after if (it.switch, it.incarnation) != last]
            del request.after[:]
            request.after.extend(others)
            request.after.add(
                switch=message.switch, incarnation=message.incarnation, number=message.number
            )

        for it in self._stream("Snapshots", request, taken, service="flows"):
            yield Snapshot(it.switch, it.incarnation, it.number, _rows(it.values, arrays))

    def subscribe_flows(
        self,
        name: str,
        *,
        class_: Optional[int] = None,
        max_age_us: Optional[int] = None,
        interval: float = 0.1,
        heartbeat: float = 0.0,
    ) -> Iterator[FlowsChange]:
        """All flows, then those that change or are gone, and word when the view is not within the limits.
        Times are in seconds."""
        request = flows_pb2.SubscribeFlowsRequest(
            name=name,
            limits=_flows_limits(False, max_age_us),
            interval_us=int(interval * 1e6),
            heartbeat_us=int(heartbeat * 1e6),
        )
        if class_ is not None:
            setattr(request, "class", class_)
        for message in self._stream("Subscribe", request, service="flows"):
            age_us = message.told.age_us if message.HasField("told") else None
            flows = [_flow(flow) for flow in message.flows]
            gone = [(flow.shard, flow.key) for flow in message.gone]
            yield FlowsChange(age_us, message.met, message.all, flows, gone)
