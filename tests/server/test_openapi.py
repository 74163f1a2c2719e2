"""The OpenAPI document holds: random requests by it get the answers that it promises."""

import httpx
import pytest

from tests.server.harness import backwards, scored, serving

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402
from schemathesis import GenerationMode  # noqa: E402
from schemathesis.specs.openapi.checks import positive_data_acceptance  # noqa: E402

KEY = "a-key-of-enough-characters"


@pytest.fixture(scope="module")
def schema():
    with serving(scored(fn=lambda query, passages: len(passages[0])), backwards(), keys=[KEY]) as url:  # fmt: skip # noqa: E501
        found = schemathesis.openapi.from_url(f"{url}/openapi.json")
        found.auth()(Keyed)
        yield found


class Keyed:
    """Sends the key, in a way that lets schemathesis also try without it."""

    def get(self, case, context):
        return KEY

    def set(self, case, data, context):
        case.headers["Authorization"] = f"Bearer {data}"


UNSAID = [positive_data_acceptance]
"""That an object needs a text or one of the rank_fields, which JSON Schema has no words for."""
RIGHT, WRONG = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
CASES = [
    *(("POST", path, mode) for path in ("/v1/rerank", "/v2/rerank") for mode in (RIGHT, WRONG)),
    *(("GET", path, RIGHT) for path in ("/health", "/ready", "/programs", "/metrics")),
]


@pytest.mark.parametrize(("method", "path", "mode"), CASES)
def test_random_requests_get_what_the_document_promises(schema, method, path, mode):
    statuses = set()

    @given(case=schema[path][method].as_strategy(generation_mode=mode))
    @settings(
        max_examples=30, deadline=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), database=None,
    )  # fmt: skip
    def ask(case):
        response = case.call_and_validate(excluded_checks=UNSAID)
        statuses.add(response.status_code)

    ask()
    assert statuses <= ({200, 400, 404} if mode is RIGHT else set(range(400, 500)))


def test_the_document_names_every_route_and_error(schema):
    document = schema.raw_schema
    assert set(document["paths"]) == {
        "/v1/rerank", "/v2/rerank", "/health", "/ready", "/programs", "/metrics",
    }  # fmt: skip
    answers = document["paths"]["/v2/rerank"]["post"]["responses"]
    assert {"200", "400", "401", "404", "413", "415", "429", "504"} <= set(answers)
    assert document["paths"]["/programs"]["get"]["security"] == [{"key": []}]
    assert "security" not in document["paths"]["/health"]["get"]


def test_the_example_of_the_document_works():
    with serving(scored(fn=lambda query, passages: "Paris" in passages[0])) as url:
        document = httpx.get(f"{url}/openapi.json").json()
        content = document["paths"]["/v2/rerank"]["post"]["requestBody"]["content"]
        example = content["application/json"]["example"]
        answer = httpx.post(f"{url}/v2/rerank", json=example).json()
    assert [result["index"] for result in answer["results"]] == [1]
