"""plimsoll.profile_memory and plimsoll.checklist."""
import pathlib
import xml.etree.ElementTree

import numpy as np
import pytest

import plimsoll

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "digits.onnx"
FEED = {"image": np.zeros((4, 1, 8, 8), np.float32)}


@pytest.fixture
def session():
    return plimsoll.InferenceSession(DIGITS)


def test_a_session_that_does_not_grow(session):
    profile = plimsoll.profile_memory(session, FEED, runs=400)
    assert not profile.grows and profile.verdict in ("flat", "plateau"), str(profile)
    assert profile.rise_bytes < 1 << 18, str(profile)  # what the profile keeps itself was taken before
    assert profile.samples[0].run == 0 and profile.samples[-1].run == 400
    assert "nothing grows" in profile.conclusion() and profile.table().count("\n") == 12
    picture = xml.etree.ElementTree.fromstring(profile.svg())
    assert len(picture.findall("{*}polyline")) == 2


def test_a_caller_that_keeps_what_it_is_given(session):
    kept = []

    def feed(number):
        kept.append(np.ones(200_000, np.uint8))  # a leak of the caller's
        return FEED

    profile = plimsoll.profile_memory(session, feed, runs=400)
    assert profile.grows and profile.bytes_per_run == pytest.approx(200_000, rel=0.1), str(profile)
    assert profile.holders and all("session's account" not in name for name, _ in profile.holders)
    assert "leak: " in str(profile)


def test_too_few_runs_are_undecided(session):
    assert plimsoll.profile_memory(session, FEED, runs=1).verdict == "undecided"
    with pytest.raises(plimsoll.InvalidArgument, match="at least one run"):
        plimsoll.profile_memory(session, FEED, runs=0)


def named(session, advice, **keywords):
    point, = [point for point in plimsoll.checklist(session, **keywords) if point.advice == advice]
    return point


def test_what_holds_for_the_defaults(session):
    assert named(session, "memory patterns").holds and named(session, "memory arena").holds
    assert named(session, "arena extension strategy").holds
    assert named(session, "recomputation in training").holds is None


@pytest.mark.parametrize("attribute, advice", [("enable_mem_pattern", "memory patterns"), ("enable_cpu_mem_arena", "memory arena")])
def test_the_line_to_change_changes_it(attribute, advice):
    sess_options = plimsoll.SessionOptions()
    setattr(sess_options, attribute, False)
    point = named(plimsoll.InferenceSession(DIGITS, sess_options), advice)
    assert point.holds is False and point.line in str(point)
    exec(point.line)  # on sess_options
    assert named(plimsoll.InferenceSession(DIGITS, sess_options), advice).holds


def test_the_limit_that_it_names_is_enough(session):
    sess_options = plimsoll.SessionOptions()
    point = named(session, "memory limit", shapes={"image": [4, 1, 8, 8]})
    assert point.holds is False
    exec(point.line)
    limited = plimsoll.InferenceSession(DIGITS, sess_options)
    limited.run(None, FEED)
    assert named(limited, "memory limit").holds
    batch = named(limited, "batch size")
    assert batch.holds and "can be at most" in batch.found


def test_bindings_and_other_sessions_are_seen(session):
    assert named(session, "sessions reused").holds
    before = named(session, "I/O binding").found  # of the whole process: other tests may have left some
    binding = session.io_binding()
    assert named(session, "I/O binding").holds and named(session, "I/O binding").found != before
    another = plimsoll.InferenceSession(DIGITS)
    assert not named(session, "sessions reused").holds
    another.close()
    assert named(session, "sessions reused").holds
    del binding


def test_it_prints_every_point(session):
    points = plimsoll.checklist(session)
    text = str(points)
    assert all(point.advice in text for point in points) and len(points) >= 10
    assert all(point.holds is False for point in points.open)
