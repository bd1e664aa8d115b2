"""Sends lines to groups, or prints a group's messages in the order that all receivers have."""

import argparse
import itertools
import sys

from stateplane_multicast import Receiver, Sender


def send(controller: str, keys: str | None, groups: str) -> None:
    with Sender(controller, keys=keys) as sender:
        for line in sys.stdin.buffer:
            sender.send(map(int, groups.split(",")), line.rstrip(b"\n"))
        sender.flush()


def receive(controller: str, keys: str | None, group: int, count: int) -> None:
    with Receiver(controller, group, keys=keys) as receiver:
        print("listed", file=sys.stderr, flush=True)
        for message in itertools.islice(receiver, count):
            place = message.place
            print(f"{place.time}.{place.group} {message.payload.decode()}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", help="file of keys: then messages are sealed")
    parser.add_argument("controller")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("send").add_argument("groups", help="a list like 0,1")
    receiving = commands.add_parser("receive")
    receiving.add_argument("group", type=int)
    receiving.add_argument("count", type=int)
    words = parser.parse_args()
    if words.command == "send":
        send(words.controller, words.keys, words.groups)
    else:
        receive(words.controller, words.keys, words.group, words.count)


if __name__ == "__main__":
    main()
