"""What errors of the driver mean, and calls that end before they are cancelled."""

from __future__ import annotations

import asyncio

import anyio
import anyio.lowlevel
import pytest
from asyncmy import errors

from raf_session.errors import StorageBusyError
from raf_session.journals._mysql_faults import PacketTooLargeError, fault, is_complete
from raf_session.journals._mysql_settling import Settled
from raf_session.journals._sql_dialect import FaultKind

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.OperationalError(1213, "Deadlock found"), FaultKind.CONFLICT),
        (errors.OperationalError(1205, "Lock wait timeout"), FaultKind.CONFLICT),
        (errors.OperationalError(2003, "Can't connect"), FaultKind.REFUSED),
        (errors.OperationalError(2006, "gone away"), FaultKind.REFUSED),
        (errors.InterfaceError(0, "Not connected"), FaultKind.REFUSED),
        (errors.OperationalError(2013, "Lost connection"), FaultKind.LOST),
        (errors.OperationalError(1927, "Connection was killed"), FaultKind.LOST),
        (errors.OperationalError(1053, "shutdown"), FaultKind.LOST),
        (errors.OperationalError(1317, "Query was interrupted"), FaultKind.LOST),
        (errors.InternalError("Packet sequence number wrong"), FaultKind.LOST),
        (errors.OperationalError(2099, "anything of the driver's"), FaultKind.LOST),
        (ConnectionResetError("reset"), FaultKind.LOST),
        (errors.OperationalError(1040, "Too many connections"), FaultKind.BUSY),
        (errors.OperationalError(1203, "max_user_connections"), FaultKind.BUSY),
        (errors.OperationalError(1114, "The table is full"), FaultKind.FULL),
        (errors.OperationalError(1030, "Got error 28 from engine"), FaultKind.FULL),
        (
            errors.OperationalError(3, "Error writing (Errcode: 28 'No space left')"),
            FaultKind.FULL,
        ),
        (errors.OperationalError(1153, "packet"), FaultKind.TOO_LARGE),
        (PacketTooLargeError("packet"), FaultKind.TOO_LARGE),
        (errors.OperationalError(1290, "read-only"), FaultKind.OTHER),
        (errors.ProgrammingError(1064, "syntax"), FaultKind.OTHER),
    ],
)
def test_errors_are_told_apart(error: Exception, kind: FaultKind) -> None:
    found = fault(error)
    assert found is not None
    assert found.kind is kind
    assert str(error.args[-1]) in found.detail


@pytest.mark.parametrize(
    "said",
    [
        "Duplicate entry '7-a' for key 'entries_by_id'",
        "Duplicate entry 'for key 'x'' for key 'raf_entries.entries_by_id'",
    ],
)
def test_a_key_taken_twice_is_named(said: str) -> None:
    found = fault(errors.IntegrityError(1062, said))
    assert found is not None
    assert (found.kind, found.constraint) == (FaultKind.DUPLICATE, "entries_by_id")


@pytest.mark.parametrize(
    "error", [ValueError("x"), StorageBusyError("mysql", "x"), KeyError("x")]
)
def test_what_is_not_of_the_driver_is_left_alone(error: Exception) -> None:
    assert fault(error) is None


def test_only_an_answer_of_the_server_leaves_a_connection_in_order() -> None:
    assert is_complete(errors.IntegrityError(1062, "Duplicate"))
    for code in (0, 2006, 2013, 1317, 1927, 1053):
        assert not is_complete(errors.OperationalError(code, "x"))
    assert not is_complete(errors.InternalError("Packet sequence number wrong"))
    assert not is_complete(OSError("x"))


# Calls that settle ---------------------------------------------------------------


class Call:
    """A call that waits for three answers, and notes its end."""

    def __init__(self) -> None:
        self.ended = False
        self.answers = [asyncio.get_running_loop().create_future() for _ in range(3)]

    async def run(self) -> str:
        for answer in self.answers:
            await answer
            await asyncio.sleep(0)
        self.ended = True
        return "done"

    def answer(self, *, after: float = 0.02, error: Exception | None = None) -> None:
        loop = asyncio.get_running_loop()
        for place, answer in enumerate(self.answers, 1):
            if error is None:
                loop.call_later(place * after, answer.set_result, None)
            else:
                loop.call_later(place * after, answer.set_exception, error)


async def test_a_call_gives_its_result() -> None:
    call = Call()
    call.answer(after=0)
    assert await Settled(call.run()) == "done"


async def test_a_call_gives_its_error() -> None:
    call = Call()
    call.answer(after=0, error=LookupError("no"))
    with pytest.raises(LookupError, match="no"):
        await Settled(call.run())


async def test_a_task_is_cancelled_when_its_call_has_ended() -> None:
    call = Call()

    async def run() -> None:
        await Settled(call.run())

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    call.answer()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert call.ended


async def test_a_task_is_cancelled_in_the_turn_of_the_answer() -> None:
    call = Call()

    async def run() -> None:
        await Settled(call.run())

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    call.answer(after=0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert call.ended


async def test_an_answer_is_there_in_the_turn_in_which_it_came() -> None:
    answer = asyncio.get_running_loop().create_future()

    async def wait() -> object:
        return await answer

    async def run(*, settled: bool) -> object:
        return await (Settled(wait()) if settled else wait())

    tasks = [asyncio.create_task(run(settled=settled)) for settled in (True, False)]
    await asyncio.sleep(0)
    answer.set_result("done")
    await asyncio.sleep(0)
    assert [task.done() for task in tasks] == [True, True]
    assert [task.result() for task in tasks] == ["done", "done"]


async def test_a_scope_is_cancelled_when_its_call_has_ended() -> None:
    call = Call()
    call.answer()
    with anyio.move_on_after(0) as scope:
        await Settled(call.run())
    assert scope.cancelled_caught
    assert call.ended
    await anyio.lowlevel.checkpoint()  # nothing is left of it


async def test_a_cancelled_call_that_fails_is_cancelled() -> None:
    call = Call()
    call.answer(error=LookupError("no"))
    with anyio.move_on_after(0) as scope:
        await Settled(call.run())
    assert scope.cancelled_caught


async def test_a_call_without_answer_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("raf_session.journals._mysql_settling._SETTLE_SECS", 0.01)
    call = Call()
    with anyio.move_on_after(0) as scope:
        await Settled(call.run())
    assert scope.cancelled_caught
    assert not call.ended


async def test_a_time_limit_inside_the_call_is_an_error_of_the_call() -> None:
    async def limited() -> None:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.get_running_loop().create_future()
        except TimeoutError as error:
            raise LookupError("no answer") from error

    with pytest.raises(LookupError, match="no answer"):
        async with asyncio.timeout(60):
            await Settled(limited())
