"""What calls cost, over every path: known, or unknown with a reason, and never made up."""

import json

import dspy
import pytest
import yaml

import dspy_rerank as dr
from dspy_rerank.errors import InputError
from dspy_rerank.models import aliases, set_price
from dspy_rerank.prices import Price, dearest, price_of
from dspy_rerank.testing import scripted_lm

PRICE = {"input_cost_per_token": 1e-3, "output_cost_per_token": 2e-3,
         "cache_read_input_token_cost": 1e-4}  # fmt: skip


@pytest.fixture(autouse=True)
def no_aliases():
    aliases.forget()
    yield
    aliases.forget()


def litellms(model):
    return lambda url: dspy.LM(model, engine="litellm", api_base=url, api_key="k", cache=False)


def native(model):
    return lambda url: dspy.LM(model, engine="lm15", api_base=url, api_key="k", cache=False)


def aliased(count, folder, **price):
    def make(url):
        params = {"model": "openai/unheard-of", "api_base": url, "api_key": "k", **price}
        entries = [{"model_name": "judge", "litellm_params": params}] * count
        path = folder / "litellm.yaml"
        path.write_text(yaml.safe_dump({"model_list": entries}))
        return dr.models.load(path)["judge"].copy(cache=False)

    return make


def priced(lm):
    set_price(lm, **PRICE)
    return lm


def usage_of(lm, n=1):
    with dspy.context(lm=lm):
        judge = dr.PointwiseJudge(evidence="generate")
        return dr.ScoreSort(judge)("q", [f"d{i}" for i in range(n)]).ranking.usage


PATHS = {
    "direct": lambda folder: lambda url: dr.models.direct(url, model="m", cache=False),
    "native, unknown": lambda folder: native("openai/unheard-of"),
    "LiteLLM, unknown": lambda folder: litellms("openai/unheard-of"),
    "one deployment": lambda folder: aliased(1, folder),
    "a group": lambda folder: aliased(2, folder),
}


@pytest.mark.parametrize("path", PATHS)
def test_an_unknown_price_is_unknown_with_a_reason(path, serve, chat, tmp_path):
    usage = usage_of(PATHS[path](tmp_path)(serve(chat("2")).url))
    assert usage.prompt_tokens == 7
    assert usage.cost is None
    assert usage.cost_reason.startswith("no price is known for ")


KNOWN = {
    "direct": lambda folder: lambda url: priced(dr.models.direct(url, model="m", cache=False)),
    "native": lambda folder: lambda url: priced(native("openai/unheard-of")(url)),
    "LiteLLM": lambda folder: lambda url: priced(litellms("openai/unheard-of")(url)),
    "one deployment": lambda folder: aliased(1, folder, **PRICE),
    "a group": lambda folder: aliased(2, folder, **PRICE),
}


@pytest.mark.parametrize("path", KNOWN)
def test_a_price_that_was_given_counts_over_every_path(path, serve, chat, tmp_path):
    usage = usage_of(KNOWN[path](tmp_path)(serve(chat("2")).url), n=3)
    assert usage.cost == pytest.approx(3 * (7 * 1e-3 + 1 * 2e-3))
    assert usage.cost_reason == ""


@pytest.mark.parametrize("path", KNOWN)
def test_what_a_prompt_cache_had_costs_less(path, serve, chat, tmp_path):
    body = chat("2")
    body["usage"]["prompt_tokens_details"] = {"cached_tokens": 5}
    usage = usage_of(KNOWN[path](tmp_path)(serve(body).url))
    assert usage.cached_tokens == 5
    assert usage.cost == pytest.approx(2 * 1e-3 + 5 * 1e-4 + 2e-3)


@pytest.mark.parametrize("make", [native, litellms])
def test_tables_know_the_well_known(make, serve, chat):
    usage = usage_of(make("openai/gpt-4o-mini")(serve(chat("2", model="gpt-4o-mini")).url))
    assert usage.cost == pytest.approx(7 * 1.5e-7 + 1 * 6e-7)


@pytest.mark.parametrize("make", [native, litellms])
def test_a_tables_price_bounds_what_a_call_costs(make):
    price = price_of(make("openai/gpt-4o-mini")("http://127.0.0.1:9/v1"))
    assert (price.read, price.written) == pytest.approx((1.5e-7, 6e-7))


def test_a_group_is_as_dear_as_its_dearest(tmp_path):
    params = [{"model": "openai/m", **dict(PRICE, output_cost_per_token=cost)} for cost in (1, 5)]
    entries = [{"model_name": "judge", "litellm_params": each} for each in params]
    path = tmp_path / "litellm.yaml"
    path.write_text(yaml.safe_dump({"model_list": entries}))
    assert price_of(dr.models.load(path)["judge"]).written == 5


def test_the_price_of_a_group_is_unknown_where_one_is(tmp_path):
    params = [{"model": "openai/unheard-of"}, {"model": "openai/m", **PRICE}]
    entries = [{"model_name": "judge", "litellm_params": each} for each in params]
    path = tmp_path / "litellm.yaml"
    path.write_text(yaml.safe_dump({"model_list": entries}))
    says = r"none is known for \"alias 'judge' \(openai/unheard-of\)\"\..* or call "
    with pytest.raises(InputError, match=says + r"dspy_rerank\.models\.set_price\("):
        price_of(dr.models.load(path)["judge"])


def test_the_line_that_an_unpriced_group_gives_sets_its_price(serve, chat, tmp_path):
    lm = aliased(2, tmp_path)(serve(chat("2")).url)
    reason = usage_of(lm).cost_reason
    said, _, line = reason.partition("; set it, with its own figures: ")
    assert said == "no price is known for alias 'judge' (openai/unheard-of)"
    assert "router/" not in reason
    exec(line, {"dspy_rerank": dr})
    lm = dr.models.get("judge").copy(cache=False)
    assert usage_of(lm).cost == pytest.approx(7 * 1.5e-07 + 1 * 6e-07)
    assert price_of(lm) == Price(1.5e-07, 6e-07)


def test_no_count_of_tokens_no_cost(serve, chat):
    lm = priced(dr.models.direct(serve({**chat("2"), "usage": None}).url, model="m", cache=False))
    usage = usage_of(lm)
    assert usage.cost is None
    assert usage.cost_reason.endswith("did not say how many tokens it took")


def test_a_model_in_this_process_is_free():
    lm = scripted_lm("2")
    lm.engine.free = True
    assert usage_of(lm).cost == 0.0


def test_the_dearest_tier_of_a_table_counts():
    entry = {
        "input_cost_per_token": 1.0, "input_cost_per_token_above_200k_tokens": 2.0,
        "input_cost_per_token_priority": 9.0, "output_cost_per_token": 3.0,
        "output_cost_per_reasoning_token": 4.0, "cache_creation_input_token_cost": 2.5,
    }  # fmt: skip
    assert dearest(entry) == Price(2.5, 4.0)
    assert dearest({"input_cost_per_token": 0, "output_cost_per_token": 0}) is None


def test_rankings_and_evaluations_say_what_they_cost():
    lm = priced(scripted_lm("2"))
    data = [dspy.Example(query="q", documents=["a", "b"], relevance=[0, 1])] * 2
    with dspy.context(lm=lm):
        found = dr.evaluate(dr.ScoreSort(dr.PointwiseJudge()), data, queries_at_once=1)
    used = found.rows[1].usage
    assert used.cost == pytest.approx(1e-3 * used.prompt_tokens + 2e-3 * used.completion_tokens)
    assert json.loads(json.dumps(found.to_dict()))["rows"][1]["usage"]["cost"] == used.cost


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "1", True, None])
def test_a_price_is_a_number_of_dollars(value):
    with pytest.raises(InputError, match="input_cost_per_token"):
        set_price(scripted_lm("2"), input_cost_per_token=value, output_cost_per_token=0)


def test_what_has_no_price_is_called_by_its_alias(serve, tmp_path):
    lm = aliased(1, tmp_path)(serve().url)
    with dspy.context(lm=lm):
        ranking = dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))("q", ["a"]).ranking
    assert ranking.usage.cost_reason == "no price is known for judge"
    with pytest.raises(InputError, match="none is known for 'judge'"):
        price_of(lm)
