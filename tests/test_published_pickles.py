"""Reading pickles as data: plain values come back, and nothing that a pickle asks for is ever done."""

import builtins
import io
import os
import pickle
import pickletools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.published.inert import MAX_BYTES, MAX_DEPTH, MAX_STEPS, CheckpointError, Inert
from analysis.published.pickles import read_pickle
from tests.checkpoints import CLASSES, Stub, pickled

SCALARS = st.none() | st.booleans() | st.integers(-(2**100), 2**100) | st.floats(allow_nan=False) | st.text()
PLAIN = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner), max_leaves=20
)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """A file that every malicious pickle here makes if anything of it runs."""
    return tmp_path / "executed"


class Reduced:
    """Pickles as a call of a function; unpickling it makes the call."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> Any:
        return self.function, self.arguments


def refusal(data: bytes) -> CheckpointError:
    with pytest.raises(CheckpointError) as caught:
        read_pickle(data)
    return caught.value


@given(value=PLAIN, protocol=st.integers(2, 5))
def test_plain_values_come_back_as_they_were(value, protocol):
    assert read_pickle(pickle.dumps(value, protocol)) == value


def test_values_that_are_referred_to_twice_come_back_twice():
    shared = {"name": "XOM"}
    assert read_pickle(pickle.dumps([shared, shared, "XOM"])) == [shared, shared, "XOM"]


def test_sets_come_back_as_lists():
    assert sorted(read_pickle(pickle.dumps({3, 1, 2}))) == [1, 2, 3]


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("kind", CLASSES)
def test_each_of_the_five_classes_becomes_inert(kind, protocol):
    value = read_pickle(pickled([Stub(kind, text="hello")], protocol))
    assert value == [
        Inert(kind, {"__dict__": {"text": "hello"}, "__pydantic_extra__": {}, "__pydantic_private__": None})
    ]
    assert value[0].fields == {"text": "hello"}


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("function", [os.system, builtins.eval, builtins.exec, os.mkdir])
def test_a_pickle_that_calls_a_function_is_refused_and_runs_nothing(marker, function, nested, protocol):
    arguments = {os.system: f"touch {marker}", os.mkdir: str(marker)}
    evil: Any = Reduced(function, arguments.get(function, f"open({str(marker)!r}, 'w').close()"))
    if nested:
        evil = {"model": "gpt-4o", "messages": [{"role": "user", "content": [1, evil]}]}
    data = pickle.dumps(evil, protocol)
    assert refusal(data).code == "refused"
    assert not marker.exists()
    pickle.loads(data)
    assert marker.exists(), "the pickle was not malicious, so this test showed nothing"


class Slotted:
    """Pickles with a state and a slot state, and with arguments for its constructor."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 1

    def __getnewargs_ex__(self) -> Any:
        return (), {"value": 1}


def raw(*parts: bytes) -> bytes:
    return pickle.PROTO + b"\x04" + b"".join(parts) + pickle.STOP


def word(text: str) -> bytes:
    return pickle.SHORT_BINUNICODE + bytes([len(text)]) + text.encode()


def named(module: str, name: str) -> bytes:
    return word(module) + word(name) + pickle.STACK_GLOBAL


TEXT_BLOCK = named("anthropic.types.text_block", "TextBlock")
EMPTY_OBJECT = TEXT_BLOCK + pickle.EMPTY_TUPLE + pickle.NEWOBJ

TRICKS = {
    "os.system by REDUCE": named("os", "system") + word("true") + pickle.TUPLE1 + pickle.REDUCE,
    "posix.system": named("posix", "system") + word("true") + pickle.TUPLE1 + pickle.REDUCE,
    "builtins.getattr": named("builtins", "getattr") + TEXT_BLOCK + word("x") + pickle.TUPLE2 + pickle.REDUCE,
    "copyreg": named("copyreg", "_reconstructor") + pickle.EMPTY_TUPLE + pickle.REDUCE,
    "a path below an allowed name": named("anthropic.types.text_block", "TextBlock.__init__.__globals__"),
    "an allowed name of another module": named("anthropic.types", "TextBlock"),
    "another name of an allowed module": named("anthropic.types.text_block", "BaseModel"),
    "an allowed class that is called": TEXT_BLOCK + pickle.EMPTY_TUPLE + pickle.REDUCE,
    "arguments of a constructor": TEXT_BLOCK + word("x") + pickle.TUPLE1 + pickle.NEWOBJ,
    "keyword arguments": TEXT_BLOCK + pickle.EMPTY_TUPLE + pickle.EMPTY_DICT + pickle.NEWOBJ_EX,
    "an object made of a text": word("os.system") + pickle.EMPTY_TUPLE + pickle.NEWOBJ,
    "INST": pickle.MARK + b"ios\nsystem\n",
    "OBJ": pickle.MARK + named("os", "system") + pickle.OBJ,
    "GLOBAL": b"cos\nsystem\n",
    "an extension": pickle.EXT1 + b"\x01",
    "a persistent id": word("x") + pickle.BINPERSID,
    "an out-of-band buffer": pickle.NEXT_BUFFER,
    "a state with slots": EMPTY_OBJECT + pickle.EMPTY_DICT * 2 + pickle.TUPLE2 + pickle.BUILD,
    "a state that is no dictionary": EMPTY_OBJECT + word("x") + pickle.BUILD,
    "a state for the second time": EMPTY_OBJECT + (pickle.EMPTY_DICT + pickle.BUILD) * 2,
    "a key that has to be hashed": pickle.EMPTY_DICT + pickle.EMPTY_TUPLE + pickle.NONE + pickle.SETITEM,
    "bytes": pickle.SHORT_BINBYTES + b"\x01x",
    "a byte array of 2**62 bytes": pickle.BYTEARRAY8 + (2**62).to_bytes(8, "little"),
    "protocol 0": b"I1\n",
}


@pytest.mark.parametrize("trick", TRICKS)
def test_everything_but_plain_data_is_refused_by_name(trick):
    assert refusal(raw(TRICKS[trick])).code == "refused"


@pytest.mark.parametrize("target", [pickle.EMPTY_LIST, pickle.EMPTY_DICT, TEXT_BLOCK, word("text")])
def test_a_state_for_anything_but_an_object_is_refused(target):
    # BUILD on a class, or on anything with a __setstate__ of its own, would set attributes or call it.
    assert refusal(raw(target + pickle.EMPTY_DICT + pickle.BUILD)).code == "damaged"


def test_a_state_named_like_a_method_stays_a_state(marker):
    state = {"__setstate__": "os.system", "__class__": f"touch {marker}", "__dict__": 3}
    value = read_pickle(raw(EMPTY_OBJECT + pickle.dumps(state, 4)[2:-1] + pickle.BUILD))
    assert value.fields == state
    assert type(value) is Inert
    assert not marker.exists()


PLAIN_OPCODES = set(
    "PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 BINFLOAT LONG1 SHORT_BINUNICODE BINUNICODE "
    "BINUNICODE8 EMPTY_DICT EMPTY_LIST EMPTY_SET EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 APPEND APPENDS ADDITEMS "
    "SETITEM SETITEMS MEMOIZE BINPUT LONG_BINPUT BINGET LONG_BINGET GLOBAL STACK_GLOBAL NEWOBJ BUILD".split()
)


@pytest.mark.parametrize("opcode", pickletools.opcodes, ids=lambda opcode: opcode.name)
def test_every_opcode_is_one_of_those_for_plain_data_or_refused(opcode):
    data = pickle.PROTO + b"\x04" + pickle.NONE * 3 + opcode.code.encode("latin-1") + bytes(8)
    try:
        read_pickle(data)
        told = ""
    except CheckpointError as error:
        told = str(error)
    assert (f"opcode {opcode.name} is not allowed" in told) == (opcode.name not in PLAIN_OPCODES)


def test_a_pickle_with_slots_and_constructor_arguments_is_refused():
    assert refusal(pickle.dumps(Slotted(), 4)).code == "refused"


@pytest.mark.parametrize("kind", [frozenset({1}), b"bytes", bytearray(b"x"), complex(1, 2), ValueError("x"), Path("x")])
def test_other_types_of_the_standard_library_are_refused(kind):
    assert refusal(pickle.dumps(kind)).code == "refused"


def test_reading_imports_no_sdk_and_no_pickle_machine():
    program = """
import sys
import analysis.published.importing
from analysis.published.pickles import read_pickle
read_pickle(sys.stdin.buffer.read())
assert not {"openai", "anthropic", "litellm"} & set(sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], input=pickled([Stub("TextBlock", text="x")]), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


@given(cut=st.floats(0, 1, exclude_max=True))
def test_a_pickle_that_is_cut_off_anywhere_is_named_truncated_or_damaged(cut):
    data = pickled({"messages": [Stub("TextBlock", text="hello" * 100), 1.5, 300, None], "run": 70_000})
    error = refusal(data[: int(cut * len(data))])
    assert error.code in ("truncated", "damaged")


@given(place=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
def test_a_changed_byte_gives_a_value_or_a_named_error_and_nothing_else(place, byte):
    data = bytearray(pickled({"messages": [Stub("Function", name="buy", arguments="{}")], "run": 1}))
    data[int(place * len(data))] = byte
    try:
        read_pickle(bytes(data))
    except CheckpointError:
        pass


@given(data=st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_named_error(data):
    try:
        read_pickle(data)
    except CheckpointError:
        pass


def test_containers_inside_each_other_are_bounded_however_they_are_built():
    deep: Any = []
    for _ in range(MAX_DEPTH + 5):
        deep = [deep]
    assert refusal(pickle.dumps(deep, 2)).code == "too_large"
    marks = pickle.MARK * (MAX_DEPTH + 1)
    assert refusal(raw(marks)).code == "too_large"


def test_a_list_that_holds_itself_is_refused():
    endless: list[Any] = []
    endless.append(endless)
    assert refusal(pickle.dumps(endless)).code == "too_large"


def test_a_small_file_that_means_a_billion_values_is_refused_at_once():
    value: Any = ["x"]
    for _ in range(40):
        value = [value, value]
    assert refusal(pickle.dumps(value)).code == "too_large"


def test_a_small_file_that_means_terabytes_of_text_is_refused():
    text = "x" * 10**6
    assert refusal(pickle.dumps([[text] * 1000] * 1000)).code == "too_large"


def test_an_announced_size_beyond_the_file_is_refused_before_anything_is_set_aside():
    announced = pickle.BINUNICODE8 + (2**62).to_bytes(8, "little") + b"abc"
    assert refusal(raw(announced)).code == "truncated"
    assert refusal(raw(pickle.FRAME + (2**62).to_bytes(8, "little"))).code == "truncated"
    far = pickle.EMPTY_LIST + pickle.LONG_BINPUT + (2**32 - 1).to_bytes(4, "little")
    assert read_pickle(raw(far)) == []


@pytest.mark.parametrize(
    "bomb", [pickle.EMPTY_LIST, pickle.EMPTY_DICT, pickle.MEMOIZE, pickle.EMPTY_LIST + pickle.MEMOIZE]
)
def test_a_stack_or_a_memo_without_bound_is_refused(bomb):
    assert refusal(raw(pickle.EMPTY_LIST + bomb * MAX_STEPS)).code == "too_large"


def test_integers_of_many_bytes_are_refused():
    assert refusal(pickle.dumps(2**1000)).code == "too_large"


def test_a_file_beyond_the_bound_is_not_looked_at():
    assert refusal(b"\x80\x04N." + bytes(MAX_BYTES)).code == "too_large"


def test_an_error_names_byte_opcode_and_what_is_allowed():
    error = refusal(raw(named("os", "system")))
    assert str(error) == (
        "os.system is not allowed: only ChatCompletionMessage, ChatCompletionMessageToolCall, Function, TextBlock, "
        "ToolUseBlock of the two SDKs"
    )
    assert str(refusal(raw(pickle.NONE + pickle.REDUCE))) == "byte 3: opcode REDUCE is not allowed: plain data only"


def test_the_standard_unpickler_agrees_on_what_a_stub_is():
    # The builder's own check: what `pickled` writes names the class that it says.
    found = []

    class Spy(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            found.append((module, name))
            return type(name, (), {})

    Spy(io.BytesIO(pickled(Stub("TextBlock", text="x")))).load()
    assert found == [("anthropic.types.text_block", "TextBlock")]
