"""Every test starts from DSPy's own settings and an empty cache, with no network."""

import os
from pathlib import Path

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import dspy
import pytest
from dspy.dsp.utils.settings import DEFAULT_CONFIG


@pytest.fixture(autouse=True)
def clean_dspy(tmp_path_factory: pytest.TempPathFactory):
    """DSPy's settings reset; answers cached in memory only."""
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    yield
    dspy.configure(**DEFAULT_CONFIG)


@pytest.fixture
def shared_cases() -> Path:
    """The folder with further cases, where it is laid beside the project."""
    folder = Path(os.environ.get("DSPY_RERANK_CASES", Path(__file__).parents[2] / "shared/cases"))
    if not folder.is_dir():
        pytest.skip(f"no further cases at {folder}; set DSPY_RERANK_CASES")
    return folder
