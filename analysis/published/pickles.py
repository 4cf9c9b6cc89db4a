"""Owns the reading of a pickled checkpoint as plain data: nothing in it is ever executed, imported or called.

The module `pickle` is not used to read. A small machine carries out the opcodes that build texts, numbers, lists and
dictionaries, and refuses every other by name. Five classes may be named; they become inert values that hold a state and
have no behaviour, so that neither of the two SDKs that they come from is needed.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from analysis.published.inert import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_INTEGER_BYTES,
    MAX_STEPS,
    CheckpointError,
    ClassName,
    Inert,
    check_extent,
    resolve,
)


def read_pickle(data: bytes) -> Any:
    """Return what a pickle says, as texts, numbers, lists, tuples, dictionaries and `Inert` values; sets become lists.

    Raises:
        CheckpointError: for a pickle that is cut off, damaged, too large or too deep, or that asks for anything else.
    """
    if len(data) > MAX_BYTES:
        raise CheckpointError("too_large", f"{len(data)} bytes: at most {MAX_BYTES} are read")
    value = _Machine(data).run()
    check_extent(value)
    return value


_NO_VALUE: Final = object()


@dataclass(slots=True)
class _Machine:
    """Carries out one pickle's opcodes; its stack is split at marks, as the format has it."""

    data: bytes
    position: int = 0
    stack: list[Any] = field(default_factory=list)
    below: list[list[Any]] = field(default_factory=list)
    """Stacks below each open mark."""
    memo: dict[int, Any] = field(default_factory=dict)
    result: Any = _NO_VALUE

    def run(self) -> Any:
        """Carry out everything up to the stop."""
        data, handlers, end = self.data, _HANDLERS, len(self.data)
        for _ in range(MAX_STEPS):
            at = self.position
            if at >= end:
                raise self.cut_off()
            handler = handlers[data[at]]
            if handler is None:
                raise CheckpointError("refused", f"byte {at}: {_opcode_name(data[at])} is not allowed: plain data only")
            self.position = at + 1
            try:
                handler(self)
            except (IndexError, KeyError, struct.error, UnicodeDecodeError) as error:
                if self.position > end:
                    raise self.cut_off() from error
                told = f"byte {at}: {_opcode_name(data[at])} finds nothing to work on: {error}"
                raise CheckpointError("damaged", told) from error
            if self.result is not _NO_VALUE:
                return self.result
        raise CheckpointError("too_large", f"byte {self.position}: more than {MAX_STEPS} opcodes")

    def cut_off(self) -> CheckpointError:
        """Return the error of a pickle without an end."""
        return CheckpointError("truncated", f"the pickle is cut off after {len(self.data)} bytes: it has no end")

    def take(self, n: int) -> bytes:
        """Return the next bytes."""
        start = self.position
        if start + n > len(self.data):
            left = len(self.data) - start
            raise CheckpointError("truncated", f"byte {start}: {n} bytes are announced, {left} are left")
        self.position = start + n
        return self.data[start : start + n]

    def top(self, kind: type) -> Any:
        """Return the value on top of the stack, which must be of a type."""
        value = self.stack[-1]
        if type(value) is not kind:
            told = f"byte {self.position - 1}: a {type(value).__name__} where a {kind.__name__} is expected"
            raise CheckpointError("damaged", told)
        return value

    def close_mark(self) -> list[Any]:
        """Return the values since the last mark, and take up the stack below it."""
        values = self.stack
        self.stack = self.below.pop()
        return values


def _mark(machine: _Machine) -> None:
    if len(machine.below) >= MAX_DEPTH:
        raise CheckpointError("too_large", f"byte {machine.position - 1}: more than {MAX_DEPTH} containers deep")
    machine.below.append(machine.stack)
    machine.stack = []


def _stop(machine: _Machine) -> None:
    if machine.below:
        raise CheckpointError("damaged", f"byte {machine.position - 1}: the end comes inside a container")
    machine.result = machine.stack.pop()


def _proto(machine: _Machine) -> None:
    version = machine.take(1)[0]
    if not 2 <= version <= 5:
        raise CheckpointError("refused", f"pickle protocol {version} is not read: 2 to 5")


def _frame(machine: _Machine) -> None:
    (size,) = struct.unpack("<Q", machine.take(8))
    if size > len(machine.data) - machine.position:
        raise CheckpointError("truncated", f"a frame of {size} bytes is announced, more than the file has left")


def _whole_number(machine: _Machine) -> None:
    n = machine.take(1)[0]
    if n > MAX_INTEGER_BYTES:
        raise CheckpointError("too_large", f"an integer of {n} bytes: at most {MAX_INTEGER_BYTES}")
    machine.stack.append(int.from_bytes(machine.take(n), "little", signed=True))


def _put(machine: _Machine, index: int) -> None:
    machine.memo[index] = machine.stack[-1]


def _set_items(machine: _Machine) -> None:
    values = machine.close_mark()
    target = machine.top(dict)
    if len(values) % 2:
        raise CheckpointError("damaged", f"byte {machine.position - 1}: a key without a value")
    for key, value in zip(values[::2], values[1::2], strict=True):
        target[_key(machine, key)] = value


def _set_item(machine: _Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    machine.top(dict)[_key(machine, key)] = value


def _key(machine: _Machine, key: Any) -> str:
    """Return a key; only texts are, since the hash of anything else can be made costly."""
    if type(key) is not str:
        told = f"byte {machine.position - 1}: a key of type {type(key).__name__}: only texts are allowed"
        raise CheckpointError("refused", told)
    return key


def _append(machine: _Machine) -> None:
    value = machine.stack.pop()
    machine.top(list).append(value)


def _extend(machine: _Machine) -> None:
    values = machine.close_mark()
    machine.top(list).extend(values)


def _tuple_of(machine: _Machine, n: int) -> None:
    values = [machine.stack.pop() for _ in range(n)]
    machine.stack.append(tuple(reversed(values)))


def _tuple(machine: _Machine) -> None:
    values = machine.close_mark()
    machine.stack.append(tuple(values))


def _global(machine: _Machine) -> None:
    words = []
    for _ in range(2):
        end = machine.data.find(b"\n", machine.position, machine.position + 200)
        if end < 0:
            raise CheckpointError("damaged", f"byte {machine.position}: the name of a class has no end")
        words.append(machine.take(end - machine.position).decode())
        machine.position += 1
    machine.stack.append(resolve(*words))


def _stack_global(machine: _Machine) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    machine.stack.append(resolve(module, name))


def _new_object(machine: _Machine) -> None:
    arguments = machine.stack.pop()
    named = machine.stack.pop()
    if type(named) is not ClassName or arguments != ():
        told = f"byte {machine.position - 1}: an object is made of a class name and no arguments"
        raise CheckpointError("refused", told)
    machine.stack.append(Inert(named.name))


def _build(machine: _Machine) -> None:
    state = machine.stack.pop()
    target = machine.top(Inert)
    if type(state) is not dict or target.state is not None:
        told = f"byte {machine.position - 1}: an object has one state, a dictionary, not a {type(state).__name__}"
        raise CheckpointError("refused", told)
    target.state = state


def _text(size_bytes: int) -> Callable[[_Machine], None]:
    def push(machine: _Machine) -> None:
        n = int.from_bytes(machine.take(size_bytes), "little")
        machine.stack.append(machine.take(n).decode("utf-8", "surrogatepass"))

    return push


def _number(form: str) -> Callable[[_Machine], None]:
    unpack, size = struct.Struct(form).unpack, struct.calcsize(form)
    return lambda machine: machine.stack.append(unpack(machine.take(size))[0])


def _constant(value: Any) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(value)


def _fetch_near(machine: _Machine) -> None:
    """Push a value again; this and the next are half of all opcodes, so they take no detour."""
    machine.position += 1
    machine.stack.append(machine.memo[machine.data[machine.position - 1]])


def _fetch_far(machine: _Machine) -> None:
    machine.position += 4
    machine.stack.append(machine.memo[_UINT32(machine.data, machine.position - 4)[0]])


_UINT32: Final = struct.Struct("<I").unpack_from


def _store(size_bytes: int) -> Callable[[_Machine], None]:
    return lambda machine: _put(machine, int.from_bytes(machine.take(size_bytes), "little"))


_OPCODES: Final[Mapping[bytes, Callable[[_Machine], None]]] = {
    b"\x80": _proto,
    b"\x95": _frame,
    b".": _stop,
    b"(": _mark,
    b"N": _constant(None),
    b"\x88": _constant(True),
    b"\x89": _constant(False),
    b"J": _number("<i"),
    b"K": _number("<B"),
    b"M": _number("<H"),
    b"G": _number(">d"),
    b"\x8a": _whole_number,
    b"\x8c": _text(1),
    b"X": _text(4),
    b"\x8d": _text(8),
    b"}": lambda machine: machine.stack.append({}),
    b"]": lambda machine: machine.stack.append([]),
    b"\x8f": lambda machine: machine.stack.append([]),
    b")": _constant(()),
    b"\x85": lambda machine: _tuple_of(machine, 1),
    b"\x86": lambda machine: _tuple_of(machine, 2),
    b"\x87": lambda machine: _tuple_of(machine, 3),
    b"t": _tuple,
    b"a": _append,
    b"e": _extend,
    b"\x90": _extend,
    b"s": _set_item,
    b"u": _set_items,
    b"\x94": lambda machine: _put(machine, len(machine.memo)),
    b"q": _store(1),
    b"r": _store(4),
    b"h": _fetch_near,
    b"j": _fetch_far,
    b"c": _global,
    b"\x93": _stack_global,
    b"\x81": _new_object,
    b"b": _build,
}
"""Every opcode that is carried out; all others are refused, those that call something first of all."""

_HANDLERS: Final = [_OPCODES.get(bytes([byte])) for byte in range(256)]


def _opcode_name(byte: int) -> str:
    known = next((opcode for opcode in pickletools.opcodes if opcode.code == chr(byte)), None)
    return f"opcode {known.name}" if known is not None else f"byte 0x{byte:02x}"
