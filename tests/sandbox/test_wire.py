"""Frames are refused before anything is allocated, and nothing in them is ever run."""

import json
import pickle
import struct

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.sandbox.inside import sandbox_wire as wire


def test_a_frame_comes_back_as_it_went():
    header = {"a": [1, 2.5, None, True, "ü"], "b": {"c": -1}}
    tensors = {"x": torch.arange(6).reshape(2, 3), "y": torch.tensor(1.5)}
    prefix, text, body = wire.pack(header, tensors)
    assert wire.lengths(prefix, 1000, 1000) == (len(text), len(body))
    back, found = wire.unpack(text, body)
    assert back == header
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[k], tensors[k]) for k in tensors)


def test_two_names_may_share_one_memory():
    x = torch.ones(2, 2)
    _, text, body = wire.pack({}, {"a": x, "b": x[0], "c": x.T})
    assert torch.equal(wire.unpack(text, body)[1]["c"], x.T)


@pytest.mark.parametrize(("header", "body"), [(101, 0), (0, 101), (2**32 - 1, 2**32 - 1)])
def test_a_length_over_the_cap_is_refused(header, body):
    with pytest.raises(wire.TooLarge):
        wire.lengths(struct.pack("<II", header, body), 100, 100)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"1", b"null", b'{"a": NaN}', b'{"a": Infinity}', b'{"a": -Infinity}',
     b'{"a": 1e999}', b"\xff\xfe", b"[" * 100_000, b'{"a":' * 50_000, b"1" * 10_000],
)  # fmt: skip
def test_a_header_that_is_no_plain_object_is_refused(text):
    with pytest.raises(wire.BadFrame):
        wire.unpack(text, b"")


@pytest.mark.parametrize("half", ["\ud800", "a\udfffb", "\udc00\ud800", "\\ud800"])
def test_a_text_that_comes_in_can_be_written_to_a_file(half):
    _, text, *_ = wire.pack({half: [half, "ü\U0001f600"]}, {})
    ((key, (value, other)),) = wire.unpack(text, b"")[0].items()
    assert (key + value).encode() and other == "ü\U0001f600"
    assert len(key) == len(half)


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(wire.BadFrame):
        wire.unpack(b'{"a": "\xed\xa0\x80"}', b"")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_lacks_is_not_sent(number):
    with pytest.raises(ValueError):
        wire.pack({"a": number}, {})


class Explode:
    def __reduce__(self):
        return pytest.fail, ("unpickled",)


def test_a_pickle_is_refused_and_not_run():
    with pytest.raises(wire.BadFrame):
        wire.unpack(b"{}", pickle.dumps(Explode()))


def test_too_many_tensors_are_refused():
    many = {str(i): torch.zeros(0) for i in range(wire.MAX_TENSORS + 1)}
    _, text, body = wire.pack({}, many)
    with pytest.raises(wire.BadFrame):
        wire.unpack(text, body)


@given(st.binary(max_size=400), st.binary(max_size=400))
def test_any_bytes_are_a_frame_or_refused(text, body):
    try:
        header, tensors = wire.unpack(text, body)
    except wire.BadFrame:
        return
    assert type(header) is dict and json.dumps(header, allow_nan=False)
    assert all(type(t) is torch.Tensor for t in tensors.values())
