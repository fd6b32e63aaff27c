"""Events as entries, and entries as events: what the journal keeps of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from raf_session.changes import StateDelta
from raf_session.clock import to_micros, utc_now
from raf_session.entries import Entry, EntryKind
from raf_session.frozen import thaw
from raf_session.messages import ChatMessage, MessageRole
from raf_session.service.contents import USER_AUTHOR, message_of
from raf_session.service.events import Event, EventActions
from raf_session.state import is_temporary, without_temporary

__all__ = ("SUMMARY_AUTHOR", "SUMMARY_HEADING", "entry_of", "event_of", "summary_text")

SUMMARY_AUTHOR: Final = "system"
"""The author of a summary. tRPC-Agent's."""

SUMMARY_HEADING: Final = "Previous conversation summary: "
"""What stands in front of a summary. tRPC-Agent's."""

_EXTRA_FIELDS: Final = (
    "turn_complete",
    "interrupted",
    "error_code",
    "error_message",
    "grounding_metadata",
    "request_id",
    "response_id",
    "parent_invocation_id",
    "tag",
    "filter_key",
)
_EXTRA_ACTIONS: Final = ("skip_summarization", "transfer_to_agent", "escalate")


def entry_of(event: Event) -> Entry:
    """Return the entry that keeps an event, without its temporary state.

    Raises:
        InvalidValueError: a field that cannot be stored, with its path.
    """
    return Entry(
        event.id,
        EntryKind.EVENT,
        message_of(event.content, event.author),
        event.author or None,
        event.invocation_id or None,
        event.branch,
        event.timestamp,
        _delta_of(event.actions),
        event.usage_metadata,
        event.custom_metadata or {},
        _extra_of(event),
    )


def _delta_of(actions: EventActions) -> StateDelta | None:
    if not actions.state_delta and not actions.state_deleted:
        return None
    return StateDelta(
        set=without_temporary(actions.state_delta),
        deleted=[key for key in actions.state_deleted if not is_temporary(key)],
    )


def _extra_of(event: Event) -> Mapping[str, Any]:
    extra: dict[str, Any] = {}
    for name in _EXTRA_FIELDS:
        value = getattr(event, name)
        if value is not None:
            extra[name] = value
    if not event.visible:
        extra["visible"] = False
    if event.long_running_tool_ids:
        extra["long_running_tool_ids"] = sorted(event.long_running_tool_ids)
    actions = {
        name: value
        for name in _EXTRA_ACTIONS
        if (value := getattr(event.actions, name)) is not None
    }
    if event.actions.artifact_delta:
        actions["artifact_delta"] = event.actions.artifact_delta
    if actions:
        extra["actions"] = actions
    return extra


def event_of(entry: Entry) -> Event:
    """Return the event of a stored entry, its owner's own.

    An entry that another face wrote is an event too: its author is ``user``, or the
    role of its message.  A summary comes from the user's side, since a conversation
    that begins with anything else is refused by providers.
    """
    entry_id, kind, message, author, invocation_id, branch, timestamp = entry[:7]
    delta, usage, metadata, given, seq, stored_us, _ = entry[7:]
    if timestamp is None:
        micros = to_micros(utc_now()) if stored_us is None else stored_us
        timestamp = micros / 1e6
    summary = kind is EntryKind.SUMMARY
    if summary:
        message = ChatMessage.user(SUMMARY_HEADING + summary_text(entry))
        author = SUMMARY_AUTHOR
    extra: dict[str, Any] = thaw(given) if given else {}
    fields: dict[str, Any] = {
        "id": entry_id,
        "author": author or _author_of(message),
        "content": message,
        "invocation_id": invocation_id or "",
        "actions": _actions_of(delta, extra.pop("actions", None) or {}),
        "timestamp": timestamp,
    }
    if branch is not None:
        fields["branch"] = branch
    if usage is not None:
        fields["usage_metadata"] = usage
    if metadata:
        fields["custom_metadata"] = thaw(metadata)
    if extra:
        long_running = extra.pop("long_running_tool_ids", None)
        if long_running:
            fields["long_running_tool_ids"] = set(long_running)
        fields.update((k, v) for k, v in extra.items() if k in Event.model_fields)
    return Event.restored(fields, stored_us=stored_us, seq=seq, summary=summary)


def _actions_of(delta: StateDelta | None, fields: dict[str, Any]) -> EventActions:
    if delta is not None:
        fields["state_delta"] = thaw(delta.set)
        fields["state_deleted"] = set(delta.deleted)
    return EventActions.restored(fields)


def _author_of(message: ChatMessage | None) -> str:
    if message is None:
        return ""
    return USER_AUTHOR if message.role is MessageRole.USER else message.role.value


def summary_text(entry: Entry) -> str:
    """Return the text of a summary, whichever face wrote it."""
    text = entry.metadata.get("summary")
    if isinstance(text, str):
        return text
    return "" if entry.message is None else entry.message.text
