"""The kit can fail: each broken journal is caught by the check of what it breaks."""

from __future__ import annotations

import journal_mutants as mutants
import pytest
from hypothesis import HealthCheck, Phase, settings

from raf_session.conformance import (
    JOURNAL_CHECKS,
    JournalHarness,
    run_journal_checks,
    run_journal_machine,
)
from raf_session.errors import SessionError
from raf_session.journals.memory import MemoryJournal

CAUGHT_BY: dict[type[MemoryJournal], str] = {
    mutants.ReadsExpired: "expired_is_invisible_to_every_call",
    mutants.ExpiresLate: "expiry_is_strict_to_the_microsecond",
    mutants.ExpiresAtTheLimit: "expiry_is_strict_to_the_microsecond",
    mutants.ListsExpired: "expired_is_invisible_to_every_call",
    mutants.RefreshesByListing: "reads_move_nothing",
    mutants.SkipsEqualTimes: "scan_pages_over_equal_times",
    mutants.FiltersByPattern: "filters_are_literal",
    mutants.EmptyUserIsAnyUser: "scan_filters",
    mutants.LosesUpdates: "cancelled_waiters_hold_nobody_up",
    mutants.TearsBatches: "a_cancelled_append_is_whole_or_absent",
    mutants.RevivesSessions: "a_late_write_revives_nothing",
    mutants.ForgetsArchivedIds: "an_archived_id_is_known",
    mutants.AcceptsAnyIncarnation: "a_stale_incarnation_touches_nothing",
    mutants.AcceptsAnyRevision: "one_of_equal_revisions_wins",
    mutants.ChecksRevisionFirst: "append_checks_in_order",
    mutants.WritesScopesFirst: "append_commits_its_change",
    mutants.OverwritesTitles: "append_leaves_the_description",
    mutants.TrimsForGood: "trim_archives_the_oldest",
    mutants.CountsRepeatsAsActivity: "a_repeated_append_changes_nothing",
    mutants.ComparesIdsAlone: "another_body_conflicts",
    mutants.ReplacesCharacters: "text_comes_back_exactly",
    mutants.SortsKeys: "values_come_back_exactly",
    mutants.CreatesOver: "create_of_a_taken_key_changes_nothing",
    mutants.RoundsNumbers: "values_come_back_exactly",
    mutants.SharesState: "what_is_read_is_nobodys",
    mutants.ReadsTheOldest: "load_reads_the_window",
    mutants.DeletesHalf: "delete_leaves_nothing",
    mutants.DeletesUserState: "scoped_state_needs_no_session",
    mutants.SweepsWhenDry: "expire_takes_at_most_its_limit",
    mutants.ReportsWhatOthersSwept: "parallel_sweeps_report_each_once",
    mutants.FoldsCase: "equal_looking_keys_are_distinct",
    mutants.SplicesToTheEnd: "splice_replaces_a_run",
    mutants.PurgesTheWindowOnly: "purge_reaches_the_archive",
    mutants.NeverCloses: "a_closed_journal_refuses_every_call",
}
BY_THE_MACHINE = (
    mutants.ReadsExpired,
    mutants.RevivesSessions,
    mutants.ForgetsArchivedIds,
    mutants.AcceptsAnyRevision,
    mutants.OverwritesTitles,
    mutants.TrimsForGood,
    mutants.DeletesHalf,
    mutants.SplicesToTheEnd,
)
CHECKS = {check.__name__.removeprefix("check_"): check for check in JOURNAL_CHECKS}


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
@pytest.mark.parametrize(
    ("mutant", "name"), CAUGHT_BY.items(), ids=lambda x: getattr(x, "__name__", "by")
)
async def test_check_catches(mutant: type[MemoryJournal], name: str) -> None:
    harness = JournalHarness.transient(mutant.__name__, mutant)
    outcomes = await run_journal_checks(harness, [CHECKS[name]])
    assert [outcome.result for outcome in outcomes] == ["broken"]
    assert isinstance(outcomes[0].error, AssertionError | SessionError), outcomes[0]


@pytest.mark.parametrize("mutant", BY_THE_MACHINE, ids=lambda m: m.__name__)
def test_machine_catches(mutant: type[MemoryJournal]) -> None:
    harness = JournalHarness.transient(mutant.__name__, mutant)
    with pytest.raises(AssertionError):
        run_journal_machine(
            harness,
            settings(
                max_examples=300,
                stateful_step_count=40,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                print_blob=False,
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
