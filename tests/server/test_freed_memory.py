"""Memory goes back to the system when a flood of large requests is over, and not before."""

from __future__ import annotations

from stator.server.http.freed_memory import FreedMemory

_MIB = 1024 * 1024


class Trims:
    count = 0

    def __call__(self) -> None:
        self.count += 1


def test_memory_is_given_back_once_after_a_flood() -> None:
    trims = Trims()
    memory = FreedMemory(trims)
    memory.sweep(100 * _MIB, 50 * _MIB)
    memory.sweep(100 * _MIB, 50 * _MIB)
    assert trims.count == 0, "bodies are still arriving"
    memory.sweep(200 * _MIB, 0)
    assert trims.count == 0, "bodies have arrived since the last sweep"
    for _ in range(3):
        memory.sweep(200 * _MIB, 0)
    assert trims.count == 1
    memory.sweep(300 * _MIB, 0)
    memory.sweep(300 * _MIB, 0)
    assert trims.count == 2


def test_small_requests_are_no_flood() -> None:
    trims = Trims()
    memory = FreedMemory(trims)
    for _ in range(5):
        memory.sweep(_MIB, 0)
    assert trims.count == 0


def test_giving_memory_back_works_on_this_system() -> None:
    memory = FreedMemory()
    memory.sweep(100 * _MIB, 0)
    memory.sweep(100 * _MIB, 0)
