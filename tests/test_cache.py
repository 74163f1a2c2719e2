"""A command bounds the memory of its own process, wherever that runs."""

import dspy
import pytest

from dspy_rerank.cache import keep_in_memory


@pytest.fixture(autouse=True)
def own_cache():
    before = dspy.cache
    yield
    dspy.cache = before


def test_answers_in_memory_are_bounded_and_those_on_disk_stay(tmp_path):
    dspy.configure_cache(disk_cache_dir=str(tmp_path))
    keep_in_memory(7)
    assert dspy.cache.memory_cache.maxsize == 7
    assert (dspy.cache.enable_disk_cache, dspy.cache.disk_cache_dir) == (True, str(tmp_path))


def test_none_are_kept_where_a_command_asks_every_question_once(tmp_path):
    dspy.configure_cache(disk_cache_dir=str(tmp_path))
    keep_in_memory(0)
    assert not dspy.cache.enable_memory_cache
    assert dspy.cache.enable_disk_cache


def test_a_cache_that_is_off_stays_off():
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
    keep_in_memory(7)
    assert not dspy.cache.enable_memory_cache
    assert not dspy.cache.enable_disk_cache


def test_a_disk_that_takes_nothing_stops_no_command():
    dspy.configure_cache(enable_disk_cache=False, disk_cache_dir="/dev/null/cache")
    keep_in_memory(7)
    assert dspy.cache.memory_cache.maxsize == 7
