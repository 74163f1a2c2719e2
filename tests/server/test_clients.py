"""Real clients pointed at the service: right answers and right errors."""

import asyncio

import pytest

from tests.server.harness import DOCUMENTS, backwards, scored, serving

KEY = "a-key-of-enough-characters"
RIGHT = [1, 2, 0]


@pytest.fixture(scope="module")
def keyed():
    """A service that wants a key."""
    with serving(scored(), backwards(), keys=[KEY]) as url:
        yield url


def test_cohere_v1(keyed):
    cohere = pytest.importorskip("cohere")
    client = cohere.Client(KEY, base_url=keyed)
    response = client.rerank(
        model="numbers", query="q", documents=DOCUMENTS, top_n=2, return_documents=True,
        max_chunks_per_doc=10,
    )  # fmt: skip
    assert [result.index for result in response.results] == RIGHT[:2]
    assert [result.document.text for result in response.results] == ["three 3", "two 2"]
    assert all(0 <= result.relevance_score <= 1 for result in response.results)
    assert response.meta.api_version.version == "1"
    assert response.meta.dspy_rerank["degraded"] is False


def test_cohere_v1_with_fields(keyed):
    cohere = pytest.importorskip("cohere")
    documents = [{"title": "a", "n": "1"}, {"title": "b", "n": "3"}, {"title": "c", "n": "2"}]
    client = cohere.Client(KEY, base_url=keyed)
    response = client.rerank(
        model="numbers", query="q", documents=documents, rank_fields=["n"], return_documents=True
    )
    assert [result.index for result in response.results] == RIGHT
    assert response.results[0].document.title == "b"


def test_cohere_v2(keyed):
    cohere = pytest.importorskip("cohere")
    client = cohere.ClientV2(KEY, base_url=keyed)
    response = client.rerank(
        model="numbers", query="q", documents=DOCUMENTS, max_tokens_per_doc=4096, priority=1
    )
    assert [result.index for result in response.results] == RIGHT
    assert response.id
    assert response.meta.billed_units.input_tokens == 0


def test_cohere_v2_asynchronously(keyed):
    cohere = pytest.importorskip("cohere")

    async def asked():
        client = cohere.AsyncClientV2(KEY, base_url=keyed)
        many = [client.rerank(model=name, query="q", documents=DOCUMENTS) for name in NAMES]
        return await asyncio.gather(*many)

    NAMES = ["numbers", "backwards"] * 5
    answers = [[r.index for r in response.results] for response in asyncio.run(asked())]
    assert answers == [RIGHT, [2, 1, 0]] * 5


@pytest.mark.parametrize("version", ["Client", "ClientV2"])
def test_cohere_raises_its_own_errors(keyed, version):
    cohere = pytest.importorskip("cohere")
    client = getattr(cohere, version)(KEY, base_url=keyed)
    with pytest.raises(cohere.NotFoundError) as missing:
        client.rerank(model="rerank-v3.5", query="q", documents=DOCUMENTS)
    assert "numbers, backwards" in missing.value.body["message"]
    with pytest.raises(cohere.BadRequestError) as bad:
        client.rerank(model="numbers", query="q", documents=[])
    assert bad.value.body["message"].startswith("invalid request: documents")
    with pytest.raises(cohere.UnauthorizedError):
        getattr(cohere, version)("wrong", base_url=keyed).rerank(
            model="numbers", query="q", documents=DOCUMENTS
        )


def test_cohere_is_told_to_come_back():
    cohere = pytest.importorskip("cohere")
    with serving(scored(fn=asleep), at_once=1, queue=0) as url:

        async def asked():
            client = cohere.AsyncClientV2(KEY, base_url=url)
            options = {"max_retries": 0}
            calls = [
                client.rerank(
                    model="numbers", query="q", documents=["a 1"], request_options=options
                )
                for _ in range(3)
            ]
            return await asyncio.gather(*calls, return_exceptions=True)

        answers = asyncio.run(asked())
    errors = [answer for answer in answers if isinstance(answer, Exception)]
    assert [type(error) for error in errors] == [cohere.TooManyRequestsError] * 2
    assert int(errors[0].headers["retry-after"]) >= 1


async def asleep(query, passages):
    await asyncio.sleep(0.5)
    return 1.0


@pytest.mark.parametrize("model", ["cohere/numbers", "jina_ai/numbers"])
def test_litellm(keyed, model):
    litellm = pytest.importorskip("litellm")
    response = litellm.rerank(
        model=model, query="q", documents=DOCUMENTS, top_n=2, api_base=keyed, api_key=KEY
    )
    assert [result["index"] for result in response.results] == RIGHT[:2]
    assert response.results[0]["document"] == {"text": "three 3"}
    assert response.meta["billed_units"]["total_tokens"] == 0


def test_litellm_with_objects(keyed):
    litellm = pytest.importorskip("litellm")
    documents = [{"title": "a", "n": "1"}, {"title": "b", "n": "2"}]
    response = litellm.rerank(
        model="cohere/numbers", query="q", documents=documents, rank_fields=["title", "n"],
        api_base=keyed, api_key=KEY,
    )  # fmt: skip
    assert [result["index"] for result in response.results] == [0, 1]
    assert response.results[0]["document"]["text"] == "title: a\nn: '1'\n"


def test_litellm_asynchronously(keyed):
    litellm = pytest.importorskip("litellm")
    call = litellm.arerank(
        model="cohere/numbers", query="q", documents=DOCUMENTS, api_base=keyed, api_key=KEY
    )
    assert [result["index"] for result in asyncio.run(call).results] == RIGHT


@pytest.mark.parametrize("provider", ["cohere", "jina_ai"])
def test_litellm_raises_its_own_errors(keyed, provider):
    litellm = pytest.importorskip("litellm")
    ask = {"query": "q", "documents": DOCUMENTS, "api_base": keyed}
    with pytest.raises(litellm.NotFoundError, match="this service has numbers, backwards"):
        litellm.rerank(model=f"{provider}/nope", api_key=KEY, **ask)
    with pytest.raises(litellm.AuthenticationError, match="no valid api key"):
        litellm.rerank(model=f"{provider}/numbers", api_key="wrong", **ask)


def test_langchain(keyed):
    langchain_cohere = pytest.importorskip("langchain_cohere")
    from langchain_core.documents import Document

    documents = [Document(text, metadata={"place": i}) for i, text in enumerate(DOCUMENTS)]
    reranker = langchain_cohere.CohereRerank(
        model="numbers", base_url=keyed, cohere_api_key=KEY, top_n=2
    )
    found = reranker.compress_documents(documents, "q")
    assert [document.metadata["place"] for document in found] == RIGHT[:2]
    assert found[0].metadata["relevance_score"] > found[1].metadata["relevance_score"]
    assert len(reranker.rerank(documents, "q", top_n=None)) == 3


def test_langchain_sees_the_error(keyed):
    langchain_cohere = pytest.importorskip("langchain_cohere")
    cohere = pytest.importorskip("cohere")
    reranker = langchain_cohere.CohereRerank(model="x", base_url=keyed, cohere_api_key=KEY)
    with pytest.raises(cohere.NotFoundError, match="model 'x' not found"):
        reranker.rerank(DOCUMENTS, "q")


def llama_index_reranker(url, model, key=KEY):
    module = pytest.importorskip("llama_index.postprocessor.cohere_rerank")
    return module.CohereRerank(model=model, api_key=key, base_url=url, top_n=2)


def nodes():
    from llama_index.core.schema import NodeWithScore, TextNode

    texts = enumerate(DOCUMENTS)
    return [NodeWithScore(node=TextNode(text=text, id_=str(i)), score=0.1) for i, text in texts]


def test_llama_index(keyed):
    found = llama_index_reranker(keyed, "numbers").postprocess_nodes(nodes(), query_str="q")
    assert [node.node.node_id for node in found] == ["1", "2"]
    assert found[0].score > found[1].score > 0.5


def test_llama_index_sees_the_error_at_once(keyed):
    reranker = llama_index_reranker(keyed, "rerank-english-v3.0")
    cohere = pytest.importorskip("cohere")
    with pytest.raises(cohere.NotFoundError, match="not found"):
        reranker.postprocess_nodes(nodes(), query_str="q")
