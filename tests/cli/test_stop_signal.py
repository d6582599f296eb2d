"""Signals are seen wherever the process is when they arrive, and however many arrive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

# A signal at every step of waiting for one and of handling one. An Event deadlocks there.
WAITING = """
import signal, sys
from stator.cli.stop_signal import StopSignal

stop_signal, left = StopSignal(), 50

def step(frame, event, argument):
    global left
    if left:
        left -= 1
        signal.raise_signal(int(sys.argv[1]))
    return step

sys.settrace(step)
answers = [stop_signal.wait(0.01) for _ in range(60)]
sys.settrace(None)
print(left, answers[0], stop_signal.wait(0.0))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_seen_wherever_the_process_is(number: signal.Signals) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WAITING, str(number.value)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ran.stdout, ran.stderr) == ("0 True False\n", "")


STUCK = """
import os, signal, sys, time
from stator.cli.stop_signal import StopSignal

stop_signal = StopSignal()
signal.raise_signal(int(sys.argv[1]))
assert stop_signal.wait()
print("stopping", flush=True)
time.sleep(1.1)
signal.raise_signal(int(sys.argv[1]))
time.sleep(600)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_a_command_that_does_not_stop(number: signal.Signals) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", STUCK, str(number.value)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ran.returncode, ran.stdout) == (128 + number.value, "stopping\n")
    assert "a second signal" in ran.stderr
