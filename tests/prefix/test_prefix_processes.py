"""The same hashes in every process; and which twin answers in it."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "tests" / "vectors" / "prefix-v1.json"

HASHES = f"""
import importlib, json, sys
module = importlib.import_module(sys.argv[1])
with open({str(VECTORS)!r}, encoding="ascii") as file:
    vectors = json.load(file)
from raf_session.messages import ChatMessage
inputs = [vector["input"] for vector in vectors["messages"]]
models = [ChatMessage.from_openai(message) for message in inputs]
print(json.dumps([module.prefix_hashes(inputs), module.prefix_hashes(models),
    [module.header_digest(vector["input"]) for vector in vectors["headers"]]]))
"""


def run(code: str, *args: str, **environment: str) -> str:
    python = [sys.executable, "-W", "error", "-c", code, *args]
    done = subprocess.run(
        python,
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_the_hash_seed_of_the_process_is_of_no_effect(
    prefix_impl: ModuleType, seed: str
) -> None:
    printed = run(HASHES, prefix_impl.__name__, PYTHONHASHSEED=seed)
    dicts, models, headers = json.loads(printed)
    vectors = json.loads(VECTORS.read_text(encoding="ascii"))
    assert dicts == models == [int(v["chain"], 16) for v in vectors["messages"]]
    assert headers == [int(v["digest"], 16) for v in vectors["headers"]]


SWITCH = """
from raf_session import prefix
names = [n for n in prefix.__all__ if callable(getattr(prefix, n))]
print(prefix.ACCELERATED, {getattr(prefix, n).__module__ for n in names})
"""


def test_the_compiled_twin_answers_where_it_was_built(
    prefix_twins: tuple[ModuleType, ModuleType],
) -> None:
    assert prefix_twins
    printed = run(SWITCH, RAF_SESSION_PURE="0")
    assert printed.startswith("True")
    assert "_prefix_py" not in printed


def test_the_pure_twin_answers_where_it_is_asked_for() -> None:
    printed = run(SWITCH, RAF_SESSION_PURE="1")
    assert printed.startswith("False")
    assert "'raf_session._prefix'" not in printed


def test_a_pickle_is_read_by_the_other_twin(
    prefix_twins: tuple[ModuleType, ModuleType],
) -> None:
    assert prefix_twins
    dump = """
import pickle, sys
from raf_session.prefix import PrefixTracker
tracker = PrefixTracker()
tracker.touch([{"role": "user", "content": "x"}], {"model": "m"})
print(pickle.dumps(tracker).hex())
"""
    load = """
import pickle, sys
from raf_session.prefix import PrefixTracker
tracker = pickle.loads(bytes.fromhex(sys.argv[1]))
assert type(tracker) is PrefixTracker
print(tracker.touch([{"role": "user", "content": "x"}], {"model": "m"}).append_only)
"""
    for one, other in (("0", "1"), ("1", "0")):
        pickled = run(dump, RAF_SESSION_PURE=one).strip()
        assert run(load, pickled, RAF_SESSION_PURE=other).strip() == "True"


def test_both_twins_have_the_same_surface(
    prefix_twins: tuple[ModuleType, ModuleType],
) -> None:
    compiled, pure = prefix_twins
    assert set(compiled.__all__) == set(pure.__all__)
    for name in pure.__all__:
        one, other = getattr(compiled, name), getattr(pure, name)
        if not callable(other):
            assert one == other
            continue
        assert inspect.getdoc(one) == inspect.getdoc(other)
        if isinstance(other, type):
            public = {n for n in dir(other) if not n.startswith("_")}
            assert {n for n in dir(one) if not n.startswith("_")} == public
            for member in public:
                docs = [inspect.getdoc(getattr(twin, member)) for twin in (one, other)]
                assert docs[0] == docs[1]
