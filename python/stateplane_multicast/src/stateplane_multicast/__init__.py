"""Messages that all receivers of all groups get in one order.

A Sender sends to groups of receivers, a Receiver gets the messages of one group; both run over
the C library libstateplane_multicast_c.so. docs/multicast.md says what is promised.

One thread at a time uses a sender or a receiver: calls of others wait for it. Signs of life are
given within calls: a program that keeps one open calls it at least once a second.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, NamedTuple

from . import _library
from ._library import library

__all__ = [
    "Busy",
    "Error",
    "Message",
    "MessageId",
    "Place",
    "Receiver",
    "Refused",
    "Sender",
    "Sent",
    "TakenOff",
    "Unknown",
]

_OK, _NOTHING, _NO_LANE, _TAKEN_OFF = 0, 1, 2, 3
_COMPLETE, _REFUSED, _UNKNOWN = 1, 2, 3

# Longest call of the library, in seconds: Python looks at signals between two of them.
_SLICE = 0.1


class Error(Exception):
    """A call that did not do what it was asked for.

    code is the number in stateplane_multicast.h.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class TakenOff(Error):
    """The receiver was taken off its group's list: it was silent or too slow."""


class Busy(Error):
    """Each of the sender's lanes for these groups carries a message, and none ended in the time given."""


class Refused(Error):
    """A message went nowhere. code is the protocol's (docs/multicast-protocol.md)."""


class Unknown(Error):
    """It is not known whether a message is delivered. It may be delivered yet."""


class MessageId(NamedTuple):
    """Id of a message: slot of its sender's session, lane, and number in the lane."""

    session: int
    lane: int
    number: int


class Place(NamedTuple):
    """Place of a message in the order: of two, the greater is later."""

    time: int
    group: int


class Message(NamedTuple):
    """A message, as a receiver gets it."""

    place: Place
    id: MessageId
    groups: frozenset[int]
    payload: bytes


def _id(of: _library.Id) -> MessageId:
    return MessageId(of.session, of.lane, of.number)


def _place(of: _library.Place) -> Place:
    return Place(of.time, of.group)


def _text(pointer: bytes | None) -> str:
    return (pointer or b"").decode()


def _failure(code: int) -> Error:
    text = f"{_text(library().text(code))}: {_text(library().error())}"
    return (TakenOff if code == _TAKEN_OFF else Error)(code, text)


def _check(code: int) -> int:
    if code > _NO_LANE:
        raise _failure(code)
    return code


def _us(seconds: float) -> int:
    return max(0, int(seconds * 1e6))


def _options(
    controllers: str | Iterable[str],
    address: str | None,
    keys: str | None,
    timeout: float,
    lanes: int = 0,
    queue: int = 0,
) -> _library.Options:
    if not isinstance(controllers, str):
        controllers = ",".join(controllers)
    return _library.Options(
        size=ctypes.sizeof(_library.Options),
        controllers=controllers.encode(),
        address=address.encode() if address else None,
        keys=str(keys).encode() if keys else None,
        timeout_us=max(1, _us(timeout)),
        lanes=lanes,
        queue=queue,
    )


def _range(name: str, value: int, most: int) -> int:
    if not 0 <= value <= most:
        raise ValueError(f"{name} is between 0 and {most}, not {value}")
    return value


def _map(groups: Iterable[int]) -> int:
    bits = 0
    for group in groups:
        bits |= 1 << _range("a group", group, 31)
    return bits


def _set(bits: int) -> frozenset[int]:
    return frozenset(group for group in range(32) if bits >> group & 1)


class _Handle:
    """An open handle of the library, with a lock that keeps threads apart."""

    _kind: str

    def __init__(self, options: _library.Options, *arguments: Any) -> None:
        self._lock = threading.RLock()
        self._handle: ctypes.c_void_p | None = None
        handle = ctypes.c_void_p()
        opens = getattr(library(), f"{self._kind}_open")
        _check(opens(ctypes.byref(options), *arguments, ctypes.byref(handle)))
        self._handle = handle

    def _call(self, name: str, *arguments: Any) -> int:
        with self._lock:
            if self._handle is None:
                raise ValueError(f"the {self._kind} is closed")
            return _check(getattr(library(), f"{self._kind}_{name}")(self._handle, *arguments))

    def _number(self, name: str, kind: Any) -> int:
        number = kind()
        self._call(name, ctypes.byref(number))
        return int(number.value)

    def close(self, wait: float = 1.0) -> None:
        """Closes it, and waits at most so many seconds until the controller knows that."""
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                getattr(library(), f"{self._kind}_close")(handle, _us(wait))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close(0)


class Sent:
    """A message that was handed to a Sender, and what became of it."""

    def __init__(self, sender: Sender, id: MessageId) -> None:
        self._sender = sender
        self.id = id
        self._place: Place | None = None
        self._failure: Error | None = None
        self._over = False

    @property
    def over(self) -> bool:
        """True if all receivers have the message, or it was refused."""
        return self._over

    def wait(self, timeout: float | None = None) -> Place:
        """Waits until all receivers of all groups have the message; gives its place in the order.

        The place has time 0 if the groups have forgotten it. With a timeout it waits at most so
        many seconds, and raises TimeoutError.

        Raises Refused if the message went nowhere, Unknown if there is no answer in the sender's
        time: it may have been delivered, or be yet, and to wait again is allowed.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while not self._over:
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure
            left = _SLICE if end is None else end - time.monotonic()
            if left <= 0:
                raise TimeoutError("the message is under way")
            self._sender.step(min(left, _SLICE))
        if self._failure is not None:
            raise self._failure
        assert self._place is not None
        return self._place


class Sender(_Handle):
    """A sender of messages to groups. Times are in seconds.

    Messages that are under way together have no promised order; to wait for one before the next
    is sent gives them one.
    """

    _kind = "sender"

    def __init__(
        self,
        controllers: str | Iterable[str],
        *,
        address: str | None = None,
        keys: str | None = None,
        timeout: float = 10.0,
        lanes: int = 8,
    ) -> None:
        """Opens a sender, and waits until it has a session and knows the leaders.

        controllers are addresses, with a port unless it is 4795. address is the host's own, else
        that towards the first controller. keys is a file of keys: then messages are sealed.
        timeout is the time that opening has, and after which the outcome of a message is unknown.
        lanes, 1 to 255, are the messages that can be under way together.

        Raises Error if it cannot be opened.
        """
        if lanes < 1:
            raise ValueError("lanes is at least 1")
        self._under_way: dict[MessageId, Sent] = {}
        _range("lanes", lanes, 255)
        super().__init__(_options(controllers, address, keys, timeout, lanes=lanes))

    def __enter__(self) -> Sender:
        return self

    @property
    def groups(self) -> frozenset[int]:
        """The deployment's groups."""
        return _set(self._number("groups", ctypes.c_uint32))

    @property
    def under_way(self) -> int:
        """Messages that are under way."""
        return self._number("under_way", ctypes.c_size_t)

    def send(self, groups: Iterable[int], payload: bytes, timeout: float | None = None) -> Sent:
        """Sends a payload to all receivers of the groups, and does not wait for them.

        Waits while each lane carries a message; with a timeout at most so many seconds.

        Raises Busy after the timeout, Error if there is no such group or the payload is too long.
        """
        bits = _map(groups)
        end = None if timeout is None else time.monotonic() + timeout
        id = _library.Id()
        with self._lock:
            while (
                self._call("send", bits, payload, len(payload), ctypes.byref(id)) == _NO_LANE
            ):
                left = _SLICE if end is None else end - time.monotonic()
                if left <= 0:
                    raise Busy(_NO_LANE, _text(library().text(_NO_LANE)))
                self.step(min(left, _SLICE))
            sent = Sent(self, _id(id))
            self._under_way[sent.id] = sent
            self.step(0)
        return sent

    def learned(self, place: Place) -> None:
        """The program learned of a message by another way than this sender.

        What is sent from here on is behind it in the order, whatever its groups.
        """
        self._call("learned", place.time)

    def step(self, wait: float = 0.0) -> None:
        """Sends what waits, waits at most so many seconds for an answer, and takes it."""
        event = _library.Event()
        with self._lock:
            if self._call("step", _us(wait), ctypes.byref(event)) != _OK:
                return
            id = _id(event.id)
            if event.kind == _UNKNOWN:
                sent = self._under_way.get(id)
            else:
                sent = self._under_way.pop(id, None)
            if sent is None:
                return
            if event.kind == _COMPLETE:
                sent._place = _place(event.at)
            elif event.kind == _REFUSED:
                sent._failure = Refused(event.refusal, _text(library().refusal(event.refusal)))
            else:
                sent._failure = Unknown(0, "there is no answer of every group yet")
            if event.kind == _COMPLETE:
                sent._failure = None
            sent._over = event.kind != _UNKNOWN

    def flush(self, timeout: float | None = None) -> None:
        """Waits until no message is under way; with a timeout at most so many seconds.

        Raises TimeoutError after that.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while self.under_way:
            left = _SLICE if end is None else end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{self.under_way} messages are under way")
            self.step(min(left, _SLICE))


class Receiver(_Handle):
    """A receiver of one group: an iterator over its messages, in the order of all receivers.

    It gets every message with a later place than that at which it was listed. The iteration ends
    with TakenOff when the receiver is taken off its group's list.
    """

    _kind = "receiver"

    def __init__(
        self,
        controllers: str | Iterable[str],
        group: int,
        *,
        address: str | None = None,
        keys: str | None = None,
        timeout: float = 10.0,
        queue: int = 1024,
    ) -> None:
        """Opens a receiver, and waits until it is listed.

        Arguments are those of Sender. One receiver runs at an address. queue, at least 1, is the
        number of messages that may wait to be fetched: then senders wait.

        Raises Error if it cannot be opened.
        """
        if queue < 1:
            raise ValueError("queue is at least 1")
        _range("queue", queue, 2**32 - 1)
        options = _options(controllers, address, keys, timeout, queue=queue)
        super().__init__(options, _range("a group", group, 31))

    def __enter__(self) -> Receiver:
        return self

    @property
    def after(self) -> int:
        """Time of the place behind which the receiver gets all messages."""
        return self._number("after", ctypes.c_uint64)

    @property
    def queued(self) -> int:
        """Messages that wait to be fetched."""
        return self._number("queued", ctypes.c_size_t)

    def next(self, timeout: float | None = None) -> Message | None:
        """Waits for the next message; with a timeout at most so many seconds, then gives None.

        Raises TakenOff when there are no more.
        """
        end = None if timeout is None else time.monotonic() + timeout
        message = _library.Message()
        while True:
            left = _SLICE if end is None else end - time.monotonic()
            with self._lock:
                wait = _us(min(left, _SLICE))
                if self._call("next", wait, ctypes.byref(message)) == _OK:
                    payload = b""
                    if message.length:
                        payload = ctypes.string_at(message.payload, message.length)
                    place, id = _place(message.at), _id(message.id)
                    return Message(place, id, _set(message.groups), payload)
            if left <= 0:
                return None

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        message = self.next()
        assert message is not None
        return message
