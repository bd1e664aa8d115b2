"""Uses pygnmi against an engine at 127.0.0.1:9560 that follows 1,024 locations of `packets`, all 0, and
no window yet. The first argument is the command `stateplane`."""

import base64
import struct
import subprocess
import sys

from pygnmi.client import gNMIclient, gNMIException

GROUP = "/sync/groups/group[name=packets]"


def view(*arguments):
    subprocess.run([sys.argv[1], "view", *arguments], check=True, capture_output=True)


def updates(message):
    told = message.get("update", {}).get("update", [])
    return {update["path"]: update["val"] for update in told}


def location(at):
    return f"values/value[location={at}]/state/value"


def refused(call, said):
    try:
        call()
    except gNMIException as error:
        assert said in str(error), error
    else:
        raise AssertionError(said)


with gNMIclient(target=("127.0.0.1", 9560), insecure=True, gnmi_timeout=30) as client:
    can = client.capabilities()
    assert can["gnmi_version"] == "0.10.0", can
    assert can["supported_encodings"] == ["json", "json_ietf", "proto"], can
    assert [model["name"] for model in can["supported_models"]] == ["stateplane-sync"], can

    view("write", "packets", "0=7", "1=8")

    def one(path, **more):
        notification = client.get(path=[path], **more)["notification"]
        assert len(notification) == 1 and notification[0]["timestamp"] > 1_700_000_000 * 10**9
        return [(update["path"], update["val"]) for update in notification[0]["update"]]

    assert one(f"{GROUP}/state/bound", encoding="json") == [
        ("sync/groups/group[name=packets]/state/bound", 0)
    ]
    state = one(f"{GROUP}/state", encoding="json_ietf")[0][1]
    assert state["stateplane-sync:complete"] is True and state["stateplane-sync:bound"] == "0"
    assert 0 <= int(state["stateplane-sync:age"]) < 60_000_000
    names = one("/sync/groups/group/state/locations")
    assert [value for _, value in names] == [1024, 1024], names
    entry = one(f"{GROUP}/values/value[location=1]")[0][1]
    assert entry == {"location": 1, "state": {"value": 8}}, entry
    packed = one("stateplane-sync:" + GROUP[1:] + "/values-packed")[0][1]
    values = struct.unpack("<1024Q", base64.b64decode(packed))
    assert values[:3] == (7, 8, 0) and not any(values[2:])
    config = client.get(path=[GROUP], datatype="config")["notification"][0]
    assert "update" not in config

    once = client.subscribe2(
        {"mode": "once", "encoding": "proto", "subscription": [{"path": f"{GROUP}/values"}]}
    )
    told = {}
    for message in once:
        told.update(updates(message))
    assert len(told) == 1024 and told[location(0)] == 7 and told[location(1)] == 8

    polled = client.subscribe2(
        {"mode": "poll", "encoding": "proto", "subscription": [{"path": f"{GROUP}/values"}]}
    )
    assert updates(polled.get_update(timeout=30)) == told
    view("write", "packets", "5=50")
    told[location(5)] = 50
    assert updates(polled.get_update(timeout=30)) == told
    polled.close()

    stream = client.subscribe2(
        {
            "mode": "stream",
            "encoding": "json",
            "subscription": [
                {"path": f"{GROUP}/values", "mode": "on_change"},
                {
                    "path": f"{GROUP}/state/complete",
                    "mode": "sample",
                    "sample_interval": 20_000_000,
                },
                {"path": f"{GROUP}/windows", "mode": "on_change"},
            ],
        }
    )
    first = stream.get_update(timeout=30)
    assert first["sync_response"]
    complete = "state/complete"
    assert updates(first) == {**told, complete: True}
    view("write", "packets", "0=9")
    view("cut", "packets", "--keep")
    view("cut", "packets", "--keep")
    changed, samples, windows = {}, 0, []
    while changed != {location(0): 9} or samples < 3 or len(windows) < 2:
        message = stream.get_update(timeout=30)
        told = updates(message)
        samples += told.pop(complete, False)
        if "windows" in message["update"]["prefix"]:
            windows.append((message["update"]["prefix"], told))
        else:
            changed.update(told)
    stream.close()
    for number, (prefix, told) in enumerate(windows, start=1):
        assert prefix == f"{GROUP[1:]}/windows/window[number={number}]", prefix
        values = struct.unpack("<1024Q", base64.b64decode(told["state/values-packed"]))
        assert values[:2] == (9, 8) and values[5] == 50 and told["state/epoch"] == number

    refused(lambda: client.get(path=["/sync/colour"]), "below /sync are state, groups")
    refused(lambda: client.get(path=["/sync/groups/group[name=colour]"]), "groups are: packets, bytes")
    refused(lambda: client.set(update=[(f"{GROUP}/values", {"value": []})]), "stateplane view write")

print("all of it")
