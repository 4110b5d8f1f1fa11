"""The exceptions: classes, attributes, pickles."""

import errno
import os
import pickle

import pytest

import millrace
from millrace._errors import from_exit_code, make


def test_classes() -> None:
    for status, kind in ((-1, millrace.BadSampleError), (-2, millrace.BadDataError), (-3, OSError), (-4, ValueError)):
        error = make(status, "somewhere: something")
        assert isinstance(error, kind) and isinstance(error, millrace.Error)
        assert (error.status, error.where, str(error)) == (status, "somewhere", "somewhere: something")
    assert type(make(-9, "unknown")) is millrace.Error
    assert [type(from_exit_code(code, "x")) for code in (1, 2, 3)] == [
        millrace.BadDataError, millrace.MisuseError, millrace.SystemFailure
    ]  # fmt: skip


def test_a_bad_sample_names_itself() -> None:
    error = make(-1, "a: b/train-00003.mdb: sample 12 (train/a (1).jpg): its image differs")
    assert isinstance(error, millrace.BadSampleError)
    assert (error.shard, error.sample, error.source) == ("train-00003", 12, "train/a (1).jpg")
    error = make(-1, "no place")
    assert isinstance(error, millrace.BadSampleError) and (error.shard, error.sample, error.source) == ("", -1, "")


def test_errno() -> None:
    error = make(-3, "there: " + os.strerror(errno.ENOSPC))
    assert isinstance(error, OSError) and error.errno == errno.ENOSPC


@pytest.mark.parametrize("status", [-1, -2, -3, -4])
def test_errors_can_be_pickled(status: int) -> None:
    error = make(status, "there: what")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)
