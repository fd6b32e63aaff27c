"""Summaries of what leaves a session's window: by a model, or of its own sentences."""

from raf_session.summarizers.chat_completions import ChatCompletionsSummarizer
from raf_session.summarizers.extractive import ExtractiveSummarizer
from raf_session.summarizers.model import ModelSummarizer
from raf_session.summarizers.prompt import SUMMARY_PROMPT, render_request
from raf_session.summarizers.protocol import Summarizer
from raf_session.summarizers.transcript import render_message, render_messages

__all__ = (
    "SUMMARY_PROMPT",
    "ChatCompletionsSummarizer",
    "ExtractiveSummarizer",
    "ModelSummarizer",
    "Summarizer",
    "render_message",
    "render_messages",
    "render_request",
)
