"""The web page in a real browser."""

import asyncio
import json
import re
import shutil

import httpx
import pytest

import dspy_rerank as dr
from dspy_rerank.server import Program
from tests.server.harness import scored, serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
KEY = "a-key-of-enough-characters"


def longest(query, passages):
    left, right = map(len, passages)
    return {"winner": left - right, "confidence": 0.75, "reasoning": "it is <b>longer</b>"}


async def never(query, passages):
    await asyncio.sleep(600)
    return 1.0


def failing(query, passages):
    raise RuntimeError("boom")


def programs():
    asks = dr.PointwiseJudge("query, criteria, passage -> grade: float", evidence="generate")
    lm = dr.testing.scripted_lm(lambda prompt: "3" if "best" in prompt else "cannot say")
    return [
        scored(),
        Program("longest", dr.MergeSort(dr.FunctionJudge(longest))),
        Program("criteria", dr.ScoreSort(asks), lm),
        scored("never", fn=never),
        scored("failing", fn=failing),
    ]


@pytest.fixture(scope="module")
def site():
    with serving(*programs(), documents=50) as url:
        yield url


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no chromium on the PATH")
    with api.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, headless=True)
        yield running
        running.close()


@pytest.fixture
def open_page(browser, site):
    """Opens the page; what goes wrong in it, and every request it makes, is kept."""
    contexts = []

    def opening(url=site, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.wrong, page.asked = [], []
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on("dialog", lambda dialog: (page.wrong.append("dialog"), dialog.dismiss()))
        page.on("console", lambda m: m.type == "error" and page.wrong.append(m.text))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(url)
        return page

    yield opening
    for context in contexts:
        context.close()


def fill(page, query="q", documents=("one 1", "three 3", "two 2"), first="numbers", second=""):
    page.wait_for_selector("#first option", state="attached")
    page.fill("#query", query)
    page.check("input[value=json]")
    page.fill("#documents", json.dumps(list(documents)))
    page.select_option("#first", first)
    if second:
        page.select_option("#second", second)


def rank(page, **what):
    fill(page, **what)
    page.click("#go")
    page.wait_for_selector("#go:enabled")


def texts(page, column=0):
    return page.locator("article").nth(column).locator(".ranked .text").all_inner_texts()


def test_a_ranking_with_its_moves_and_its_bill(open_page):
    page = open_page()
    assert page.is_visible("#empty")
    rank(page)
    assert texts(page) == ["three 3", "two 2", "one 1"]
    assert page.locator(".moved").all_inner_texts() == ["▲ 1", "▲ 1", "▼ 2"]
    assert "3 calls" in page.inner_text(".bill")
    assert not page.is_visible("#empty")
    assert page.wrong == []


def test_the_judgments_can_be_read(open_page):
    page = open_page()
    rank(page, first="longest")
    page.click("summary")
    rows = page.locator("tbody tr").all_inner_texts()
    assert len(rows) == 3
    assert re.match(r"1\s+#1 #2\s+#2\s+75 %\s+it is <b>longer</b>", rows[0])


def test_two_programs_side_by_side(open_page):
    page = open_page()
    documents = ["a very long one 1", "three 3", "two of two 2"]
    rank(page, documents=documents, second="longest")
    assert texts(page, 0) == ["three 3", "two of two 2", "a very long one 1"]
    assert texts(page, 1) == ["a very long one 1", "two of two 2", "three 3"]
    assert "different documents first; they agree on 0 % of 3 pairs" in page.inner_text(
        "#agreement"
    )
    assert "3 in longest" in page.locator(".facts").first.inner_text()
    page.locator("article").first.locator(".ranked li").first.hover()
    assert page.locator("article").nth(1).locator("li.same .text").inner_text() == "three 3"


HOSTILE = [
    "<script>alert(1)</script><img src=x onerror=alert(2)> 3",
    "</div></article><h1>owned</h1> 2",
    "javascript:alert(1) {{7*7}} ${alert(1)} 1",
]


def test_hostile_texts_are_only_shown(open_page):
    page = open_page()
    rank(page, query="<img src=x onerror=alert(3)>", documents=HOSTILE, second="longest")
    assert texts(page) == HOSTILE
    assert page.locator("article h1, article img, article script").count() == 0
    assert page.inner_text("#asked").endswith("“<img src=x onerror=alert(3)>”")
    assert page.wrong == []


def test_nothing_is_loaded_from_elsewhere(open_page, site):
    page = open_page()
    rank(page)
    assert all(url.startswith((site, "data:")) for url in page.asked)
    policy = httpx.get(site).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_the_policy_stops_what_would_be_put_in(open_page):
    page = open_page()
    put = "const s = document.createElement('script'); s.text = 'window.owned = 1'; document.body.append(s)"  # fmt: skip # noqa: E501
    with pytest.raises(Exception, match=r"TrustedScript|Content Security Policy"):
        page.evaluate(f"() => {{ {put} }}")
    assert page.evaluate("window.owned") is None


@pytest.mark.parametrize(
    ("how", "text", "said"),
    [("line", "one 1\n\n  two 2 \n", "2 documents"), ("blank", "one\n1\n\ntwo 2", "2 documents"),
     ("json", '["one 1"]', "1 document"), ("json", "[", "not a JSON array yet"),
     ("line", " \n ", "no documents")],
)  # fmt: skip
def test_documents_are_counted_as_they_are_typed(open_page, how, text, said):
    page = open_page()
    page.check(f"input[value={how}]")
    page.fill("#documents", text)
    assert page.inner_text("#count") == said


def test_mistakes_are_said_and_the_last_ranking_stays(open_page):
    page = open_page()
    rank(page)
    for change, said in (
        (lambda: page.fill("#query", " "), "Write a query first."),
        (lambda: page.fill("#documents", "[]"), "Paste at least one document."),
        (lambda: page.fill("#documents", "[1"), "Documents are not JSON"),
        (lambda: page.fill("#documents", "[1]"), "documents[0]: Input should be a valid string"),
        (lambda: page.fill("#documents", json.dumps(["x"] * 51)), "at most 50 are ranked at once"),
        (lambda: page.fill("#top", "0"), "Top must be a whole number from 1."),
    ):
        fill(page)
        change()
        page.click("#go")
        page.wait_for_selector("#problem:not([hidden])")
        page.wait_for_selector("#go:enabled")
        assert said in page.inner_text("#problem")
        page.fill("#top", "")
    assert texts(page) == ["three 3", "two 2", "one 1"]


def test_a_failing_model_is_said_with_the_ranking(open_page):
    page = open_page()
    rank(page, first="failing")
    assert page.locator(".warning").first.inner_text() == (
        "degraded: the language model failed (RuntimeError)"
    )
    assert texts(page) == ["one 1", "three 3", "two 2"]


def test_further_inputs_are_asked_for_and_unknown_answers_are_shown(open_page):
    page = open_page()
    fill(page, first="criteria", documents=["plain", "best"])
    page.fill("#extra-criteria", "anything")
    page.click("#go")
    page.wait_for_selector(".ranked li")
    page.click("summary")
    assert page.locator("tr.unknown").count() == 1
    assert "could not be read" in page.locator(".warning").first.inner_text()


def test_a_ranking_can_be_stopped_and_ends_in_the_service(open_page, site):
    page = open_page()
    fill(page, first="never")
    page.click("#go")
    page.click("#stop")
    page.wait_for_selector("#go:enabled")
    assert not page.is_visible("#problem")
    page.wait_for_function(
        "async () => (await (await fetch('ready')).json()).programs.never.running === 0"
    )


def test_the_key_is_asked_for_where_one_is_needed(open_page):
    with serving(scored(), keys=[KEY]) as url:
        page = open_page(url)
        page.wait_for_selector("#locked:not([hidden])")
        assert page.inner_text("#problem") == "This service needs an API key."
        page.fill("#key", KEY)
        page.press("#key", "Tab")
        page.wait_for_selector("#first option", state="attached")
        assert not page.is_visible("#problem")
        rank(page)
        assert texts(page)[0] == "three 3"
        assert page.evaluate("Object.keys(localStorage).length + document.cookie.length") == 0


@pytest.mark.parametrize("width", [320, 390, 768, 1400])
def test_no_width_needs_sideways_scrolling(open_page, width):
    page = open_page(viewport={"width": width, "height": 800})
    rank(page, documents=[*HOSTILE, "x" * 2000], second="longest")
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_dark_mode_is_dark(open_page):
    page = open_page(color_scheme="dark")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(map(int, re.findall(r"\d+", ground))) < 64


def test_the_keyboard_is_enough(open_page):
    page = open_page()
    fill(page)
    page.focus("#documents")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".ranked li")
    assert texts(page)[0] == "three 3"
