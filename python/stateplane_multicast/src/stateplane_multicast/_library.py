"""The C library: structures and functions of stateplane_multicast.h."""

import ctypes
import ctypes.util
import os
from typing import Any

ABI = 1
LIBRARY = "STATEPLANE_MULTICAST_LIBRARY"


class Options(ctypes.Structure):
    """stateplane_multicast_options"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("controllers", ctypes.c_char_p),
        ("address", ctypes.c_char_p),
        ("keys", ctypes.c_char_p),
        ("timeout_us", ctypes.c_uint64),
        ("lanes", ctypes.c_uint32),
        ("queue", ctypes.c_uint32),
    ]


class Id(ctypes.Structure):
    """stateplane_multicast_id"""

    _fields_ = [
        ("number", ctypes.c_uint64),
        ("session", ctypes.c_uint16),
        ("lane", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 5),
    ]


class Place(ctypes.Structure):
    """stateplane_multicast_place"""

    _fields_ = [
        ("time", ctypes.c_uint64),
        ("group", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 7),
    ]


class Event(ctypes.Structure):
    """stateplane_multicast_event"""

    _fields_ = [
        ("kind", ctypes.c_uint32),
        ("refusal", ctypes.c_uint32),
        ("id", Id),
        ("at", Place),
    ]


class Message(ctypes.Structure):
    """stateplane_multicast_message"""

    _fields_ = [
        ("id", Id),
        ("at", Place),
        ("payload", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("groups", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


_HANDLE = ctypes.c_void_p
_SIZE = ctypes.POINTER(ctypes.c_size_t)

# Name without its prefix, type of the answer, types of the arguments.
_FUNCTIONS: list[tuple[str, Any, list[Any]]] = [
    ("abi", ctypes.c_uint32, []),
    ("text", ctypes.c_char_p, [ctypes.c_int32]),
    ("refusal", ctypes.c_char_p, [ctypes.c_uint32]),
    ("error", ctypes.c_char_p, []),
    ("sender_open", ctypes.c_int32, [ctypes.POINTER(Options), ctypes.POINTER(_HANDLE)]),
    (
        "sender_send",
        ctypes.c_int32,
        [_HANDLE, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(Id)],
    ),
    ("sender_step", ctypes.c_int32, [_HANDLE, ctypes.c_uint64, ctypes.POINTER(Event)]),
    ("sender_learned", ctypes.c_int32, [_HANDLE, ctypes.c_uint64]),
    ("sender_under_way", ctypes.c_int32, [_HANDLE, _SIZE]),
    ("sender_groups", ctypes.c_int32, [_HANDLE, ctypes.POINTER(ctypes.c_uint32)]),
    ("sender_close", None, [_HANDLE, ctypes.c_uint64]),
    (
        "receiver_open",
        ctypes.c_int32,
        [ctypes.POINTER(Options), ctypes.c_uint8, ctypes.POINTER(_HANDLE)],
    ),
    ("receiver_next", ctypes.c_int32, [_HANDLE, ctypes.c_uint64, ctypes.POINTER(Message)]),
    ("receiver_queued", ctypes.c_int32, [_HANDLE, _SIZE]),
    ("receiver_after", ctypes.c_int32, [_HANDLE, ctypes.POINTER(ctypes.c_uint64)]),
    ("receiver_close", None, [_HANDLE, ctypes.c_uint64]),
]


class Library:
    """The library, whose functions are attributes without their common prefix."""

    def __init__(self) -> None:
        """Loads the library named by STATEPLANE_MULTICAST_LIBRARY, or that of the system.

        Raises OSError if it cannot be loaded, ImportError if it is another version's.
        """
        path = os.environ.get(LIBRARY)
        path = path or ctypes.util.find_library("stateplane_multicast_c")
        library = ctypes.CDLL(path or "libstateplane_multicast_c.so")
        for name, answer, arguments in _FUNCTIONS:
            function = getattr(library, f"stateplane_multicast_{name}")
            function.restype = answer
            function.argtypes = arguments
            setattr(self, name, function)
        if self.abi() != ABI:
            raise ImportError(f"the library's interface is version {self.abi()}, not {ABI}")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


_loaded: Library | None = None


def library() -> Library:
    """The library, loaded by the first call."""
    global _loaded
    if _loaded is None:
        _loaded = Library()
    return _loaded
