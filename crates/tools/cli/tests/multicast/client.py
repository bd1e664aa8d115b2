"""Uses all of the module, at a host where no receiver runs. Says `all of it` at the end."""

import queue
import sys
import threading
import time

from stateplane_multicast import Busy, Error, Place, Receiver, Sender, TakenOff

CONTROLLER = sys.argv[1]


def fails(code, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except Error as error:
        assert error.code == code, error
        return str(error)
    raise AssertionError(f"{call} does not fail")


def raises(kind, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind:
        return
    raise AssertionError(f"{call} does not raise {kind}")


# What cannot be opened.
assert "there" in fails(4, Sender, "there")
fails(6, Receiver, CONTROLLER, 31)
fails(7, Sender, "10.30.0.19", timeout=0.2)
fails(9, Sender, CONTROLLER, keys="/nowhere/keys.toml")
for wrong in ({"lanes": 0}, {"lanes": 256}):
    raises(ValueError, Sender, CONTROLLER, **wrong)
for wrong in ({"group": 32}, {"group": 0, "queue": 0}):
    raises(ValueError, Receiver, CONTROLLER, **wrong)

def receive(receiver, into):
    """Receives until the receiver is taken off its list or closed."""
    try:
        for message in receiver:
            into.put(message)
    except (TakenOff, ValueError):
        pass


with Receiver([CONTROLLER], 0) as receiver, Sender(CONTROLLER, lanes=2) as sender:
    assert sender.groups == {0, 1}, sender.groups
    assert receiver.next(timeout=0) is None and receiver.queued == 0
    # One receiver runs at an address.
    fails(10, Receiver, CONTROLLER, 0)

    fails(6, sender.send, [9], b"")
    fails(4, sender.send, [], b"")
    fails(5, sender.send, [0], bytes(100_000))
    raises(ValueError, sender.send, [32], b"")

    # The sender waits for all receivers, this program's among them, so that is fetched meanwhile.
    came = queue.Queue()
    fetcher = threading.Thread(target=receive, args=(receiver, came))
    fetcher.start()

    # Each message is complete before the next is sent: that is their order.
    sent = []
    for number in range(20):
        groups = [0] if number % 2 else [0, 1]
        handed = sender.send(groups, b"\0%d" % number)
        sent.append((handed.wait(timeout=20), handed.id, frozenset(groups), b"\0%d" % number))
        assert handed.over and handed.wait() == sent[-1][0]
    got = [tuple(came.get(timeout=20)) for _ in sent]
    assert got == sent, (got, sent)
    assert got == sorted(got) and got[0][0].time > receiver.after

    # Threads share a sender; an empty payload is one.
    def many():
        for _ in range(50):
            sender.send([0], b"").wait(timeout=20)

    threads = [threading.Thread(target=many) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert [came.get(timeout=20).payload for _ in range(150)] == [b""] * 150
    for thread in threads:
        thread.join()
    sender.flush(timeout=20)
    assert sender.under_way == 0

    # A program learns of a place elsewhere, and what it sends is behind it.
    far = Place(got[-1][0].time + 1000, 0)
    sender.learned(far)
    assert sender.send([1], b"behind").wait(timeout=20) > far

    # Lanes are bounded: whoever does not wait is told.
    def hurry():
        while True:
            sender.send([0], b"x", timeout=0)

    raises(Busy, hurry)
    sender.flush(timeout=20)

receiver.close()
fetcher.join()
raises(ValueError, receiver.next)
raises(ValueError, sender.send, [0], b"")

# A program that says nothing is taken off the list, and told so.
with Receiver(CONTROLLER, 0) as receiver:
    time.sleep(4)
    try:
        for _ in receiver:
            pass
    except TakenOff as error:
        assert error.code == 3
    raises(TakenOff, receiver.next, timeout=1)

print("all of it")
