"""Reads all values once for each line of its input, and prints the seconds that it took.

Arguments: `view`, address of an engine, group; or `shell`, address of P4Runtime, id of a register.
"""

import sys
import time

kind, address, name = sys.argv[1:]

if kind == "view":
    from stateplane_sync import Engine

    engine = Engine(address)

    def read():
        return engine.read(name).values

else:
    from p4.v1 import p4runtime_pb2
    from p4runtime_sh.p4runtime import P4RuntimeClient

    client = P4RuntimeClient(1, address, (0, 1))

    def read():
        # The shell has no command for registers: its client reads the entities.
        wanted = p4runtime_pb2.Entity()
        wanted.register_entry.register_id = int(name)
        parts = client.read_one(wanted)
        return [
            int.from_bytes(entity.register_entry.data.bitstring, "big")
            for part in parts
            for entity in part.entities
        ]


print("ready", flush=True)
for _ in sys.stdin:
    start = time.perf_counter()
    values = read()
    spent = time.perf_counter() - start
    print(len(values), spent, flush=True)

if kind == "shell":
    client.tear_down()
