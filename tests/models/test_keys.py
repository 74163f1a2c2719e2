"""Keys never leave: not in saved programs, logs, caches on disk, errors or prints, on any path."""

import asyncio
import logging

import dspy
import pytest
import yaml
from dspy.utils.exceptions import LMError

import dspy_rerank as dr
from dspy_rerank.models import aliases
from dspy_rerank.testing import FaultServer, faults

CANARY = "canary-1234567890abcdef"
"""No provider's pattern, by which LiteLLM would blot it out itself."""
SAYS = {"error": {"message": f"Incorrect API key provided: {CANARY}."}}


@pytest.fixture(autouse=True)
def no_aliases():
    aliases.forget()
    yield
    aliases.forget()


def aliased(folder, count, **more):
    def make(url):
        params = {"model": "openai/m", "api_key": "os.environ/CANARY_KEY", "api_base": url, **more}
        path = folder / "litellm.yaml"
        entries = [{"model_name": "judge", "litellm_params": params}] * count
        path.write_text(yaml.safe_dump({"model_list": entries}))
        return dr.models.load(path)["judge"]

    return make


def plain(engine):
    return lambda folder: (
        lambda url: dspy.LM("openai/m", engine=engine, api_base=url, api_key=CANARY)
    )


ENGINES = {
    "direct": lambda folder: lambda url: dr.models.direct(url, model="m", api_key=CANARY),
    "an alias": lambda folder: aliased(folder, 1),
    "a group": lambda folder: aliased(folder, 2),
    "a paced alias": lambda folder: aliased(folder, 1, model="mistral/m", rpm=600),
    "native": plain("lm15"),
    "LiteLLM": plain("litellm"),
}


@pytest.mark.parametrize("answers", ["well", "refusing", "failing"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_key_is_nowhere_to_be_seen(engine, answers, serve, chat, tmp_path, caplog, monkeypatch):
    monkeypatch.setenv("CANARY_KEY", CANARY)
    says = {"well": chat("2"), "refusing": (401, {}, SAYS), "failing": (500, {}, SAYS)}[answers]
    dspy.configure_cache(
        enable_disk_cache=True, enable_memory_cache=True, disk_cache_dir=str(tmp_path / "cache")
    )
    lm = ENGINES[engine](tmp_path)(serve(says).url).copy(num_retries=0)
    reranker = dr.ScoreSort(dr.PointwiseJudge(), error_retries=0)
    reranker.set_lm(lm)
    shown, ours = [], logging.getLogger("dspy_rerank")
    with caplog.at_level(logging.DEBUG):
        try:
            ranking = reranker("q", ["x", "y"]).ranking
            shown += [repr(ranking), str(ranking.to_dict())]
        except LMError as error:
            shown += errors_of(error)
    assert ours.getEffectiveLevel() <= logging.DEBUG or ours.level == logging.NOTSET
    told = [record for record in caplog.records if not theirs(record, engine)]
    shown += [record.getMessage() + str(record.exc_text or "") for record in told]
    shown += [str(lm.history), repr(lm), repr(getattr(lm, "engine", "")), repr(reranker)]
    dr.save(reranker, tmp_path / "ours.json")
    reranker.save(tmp_path / "dspy.json")
    shown += [(tmp_path / name).read_text() for name in ("ours.json", "dspy.json")]
    shown += [path.read_bytes().decode("latin-1") for path in (tmp_path / "cache").rglob("*")
              if path.is_file()]  # fmt: skip
    assert len(shown) > 6
    assert not [text[:2000] for text in shown if CANARY in text]


def theirs(record, engine):
    """What DSPy and LiteLLM log of the bare paths at DEBUG is theirs: no code of ours is in it."""
    return engine in ("native", "LiteLLM") and not record.name.startswith("dspy_rerank")


def errors_of(error):
    """An error and all that it says it comes from, as a traceback would print them."""
    import traceback

    return ["".join(traceback.format_exception(error)), repr(error), str(error)]


NATIVE = {"extra_headers": {"X-Trace": "1"}}
"""More than the direct engine takes, so that DSPy's own client is used."""
ALIASES = {
    "direct": lambda folder: aliased(folder, 1),
    "native": lambda folder: aliased(folder, 1, **NATIVE),
    "native, paced": lambda folder: aliased(folder, 1, rpm=600, **NATIVE),
    "LiteLLM": lambda folder: aliased(folder, 1, model="together_ai/m"),
    "a group": lambda folder: aliased(folder, 2),
}
CALLS = {
    "sync": lambda lm: lm("2 + 2?"),
    "async": lambda lm: asyncio.run(lm.acall("2 + 2?")),
    "predict": lambda lm: dspy.Predict("question -> answer")(question="2 + 2?", lm=lm),
}


class Listening(dspy.utils.callback.BaseCallback):
    """What tracing sees of errors."""

    def __init__(self):
        self.errors = []

    def on_lm_end(self, call_id, outputs, exception=None):
        self.errors.append(exception)


@pytest.mark.parametrize("status", [400, 401, 500])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("alias", ALIASES)
def test_a_plain_call_of_an_alias_repeats_no_key(
    alias, call, status, tmp_path, caplog, monkeypatch
):
    monkeypatch.setenv("CANARY_KEY", CANARY)
    caplog.set_level(logging.DEBUG, logger="dspy_rerank")
    caplog.set_level(logging.INFO)
    listening = Listening()
    echoing = faults.status(status, f"Incorrect API key provided: {CANARY}")
    with FaultServer(faults=echoing) as server, dspy.context(callbacks=[listening]):
        lm = ALIASES[alias](tmp_path)(server.base_url).copy(num_retries=0, cache=False)
        with pytest.raises(LMError) as raised:
            CALLS[call](lm)
        assert server.requests > 0
    assert alias == "a group" or "***" in str(raised.value)
    told = [text for error in (raised.value, *listening.errors) for text in linked(error)]
    told += [record.getMessage() + str(record.exc_text or "") for record in caplog.records]
    told += [repr(lm), repr(lm.engine), str(lm.history), str(lm.dump_state())]
    assert listening.errors
    assert not [text[:2000] for text in told if CANARY in text]


def linked(error):
    """An error and all that it refers to, their attributes, too."""
    found = [error]
    for each in found:
        found += [e for e in (each.__cause__, each.__context__) if e is not None and e not in found]
    return [f"{e} {e!r} {e.args} {vars(e)}" for e in found] + errors_of(error)


def test_an_alias_is_saved_as_a_plain_lm_without_keys_in_headers(tmp_path, monkeypatch):
    monkeypatch.setenv("CANARY_KEY", CANARY)
    headers = {"Authorization": f"Bearer {CANARY}"}
    lm = aliased(tmp_path, 1, extra_headers=headers, temperature=0.5)("http://127.0.0.1:1/v1")
    state = lm.dump_state()
    assert CANARY not in str(state)
    assert state["temperature"] == 0.5
    assert type(dspy.BaseLM.load_state(state)) is dspy.LM


def test_groups_share_one_filter_on_what_litellm_logs(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("CANARY_KEY", CANARY)
    groups = [aliased(tmp_path, 2)(f"http://127.0.0.1:{port}/v1") for port in (1, 2)]
    logger = logging.getLogger("LiteLLM Router")
    for group in groups:
        assert group.engine.router is not None
    before = list(logger.filters)
    assert groups[0].engine.twin.router is not None
    assert logger.filters == before
    with caplog.at_level(logging.WARNING, logger=logger.name):
        logger.warning("refused: %s", CANARY)
        monkeypatch.delenv("CANARY_KEY")
        logger.warning("asked without its variable")
    said = [record.getMessage() for record in caplog.records]
    assert said == ["refused: ***", "asked without its variable"]
