"""Agents that run in sessions. tRPC-Agent: ``trpc_agent_sdk.runners``."""

from raf_session.runner.agents import Agent, LlmAgent, Model
from raf_session.runner.invocation import InvocationContext
from raf_session.runner.runner import Runner
from raf_session.runner.templates import render_instruction
from raf_session.runner.tools import FunctionTool

__all__ = (
    "Agent",
    "FunctionTool",
    "InvocationContext",
    "LlmAgent",
    "Model",
    "Runner",
    "render_instruction",
)
