"use strict";
/* Rankings as elements of the page.
   Everything that comes from a document, a model or the service is set as text, never as HTML. */

const $ = (id) => document.getElementById(id);

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  Object.assign(element, properties);
  element.append(...children);
  return element;
}

function number(value, digits = 0) {
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

function describe(name) {
  const program = programs.find((p) => p.name === name);
  if (!program) return "";
  const parts = [program.sorter, `${program.judge} judge`, program.model, program.compiled && "compiled"];
  return parts.filter(Boolean).join(", ");
}

function moved(index, rank) {
  const up = index + 1 - rank;
  if (up === 0) return make("span", { className: "moved", textContent: "=", title: "stayed where it was" });
  const text = `${up > 0 ? "▲" : "▼"} ${Math.abs(up)}`;
  const title = `was ${index + 1} of the documents as they came`;
  return make("span", { className: `moved ${up > 0 ? "up" : "down"}`, textContent: text, title });
}

function textOf(document) {
  if (typeof document === "string") return document;
  if (document && typeof document.text === "string") return document.text;
  return JSON.stringify(document);
}

function item(result, place, answer, documents, other) {
  const more = answer.meta.dspy_rerank;
  const text = make("div", { className: "text", dir: "auto", textContent: textOf(documents[result.index]) });
  const facts = make("div", { className: "facts" });
  const meaning = `${more.relevance_score}: ${more.relevance_meaning}`;
  facts.append(make("meter", { min: 0, max: 1, value: result.relevance_score, title: meaning }),
    make("span", { textContent: result.relevance_score.toFixed(3), title: meaning }));
  const raw = more.scores[place];
  if (raw !== null) facts.append(make("span", { textContent: `score ${number(raw, 3)}` }));
  const sure = more.confidence[place];
  if (sure !== null) facts.append(make("span", { textContent: `confidence ${(100 * sure).toFixed(0)} %` }));
  if (more.truncated.includes(result.index)) facts.append(make("span", { textContent: "cut for the model" }));
  if (other) {
    const there = other.results.findIndex((r) => r.index === result.index);
    facts.append(make("span", { textContent: there < 0 ? `not in ${other.model}` : `${there + 1} in ${other.model}` }));
  }
  const row = make("li", {}, make("span", { className: "place", textContent: place + 1 }),
    moved(result.index, place + 1), text, facts);
  row.dataset.index = result.index;
  return row;
}

function some(n, what) {
  return `${number(n)} ${what}${n === 1 ? "" : "s"}`;
}

function bill(answer) {
  const used = answer.meta.dspy_rerank.usage;
  const plural = (n, what) => [number(n), n === 1 ? what : `${what}s`];
  const entries = [
    plural(used.calls, "call"),
    plural(used.rounds, "round"),
    plural(used.prompt_tokens + used.completion_tokens, "token"),
    used.cost === null ? ["cost", "unknown"] : [`$${used.cost.toFixed(4)}`, ""],
    [`${used.seconds.toFixed(1)} s`, ""],
  ];
  if (used.cached_calls) entries.splice(1, 0, [number(used.cached_calls), "cached"]);
  if (used.failed_calls) entries.push(plural(used.failed_calls, "failed call"));
  return make("ul", { className: "bill" }, ...entries.map(([value, what]) =>
    make("li", {}, make("b", { textContent: value }), ` ${what}`)));
}

function verdict(judgment) {
  if (judgment.status === "unknown") return "unknown";
  if (judgment.status === "none") return "nothing relevant";
  const name = (position) => `#${position + 1}`;
  if (judgment.order) return judgment.order.map(name).join(" > ");
  if (judgment.tie) return "tie";
  if (judgment.best !== undefined) return name(judgment.best);
  return judgment.score === undefined ? "" : number(judgment.score, 3);
}

function comparisons(answer) {
  const judgments = answer.meta.dspy_rerank.judgments || [];
  const sure = judgments.some((judgment) => judgment.confidence !== undefined);
  const head = ["", "asked about", "answer", ...(sure ? ["confidence"] : []), "words"];
  const rows = judgments.map((judgment, place) => {
    const repaired = judgment.status === "repaired" ? " (repaired)" : "";
    const confidence = judgment.confidence === undefined ? "" : `${(100 * judgment.confidence).toFixed(0)} %`;
    const words = [judgment.reason, judgment.raw].filter(Boolean).join("\n");
    return make("tr", { className: judgment.status === "unknown" ? "unknown" : "" },
      make("td", { textContent: place + 1 }),
      make("td", { textContent: judgment.group.map((p) => `#${p + 1}`).join(" ") }),
      make("td", { textContent: verdict(judgment) + repaired }),
      ...(sure ? [make("td", { textContent: confidence })] : []),
      make("td", {}, make("div", { className: "said", textContent: words })));
  });
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...head.map((h) => make("th", { textContent: h })))),
    make("tbody", {}, ...rows));
  const said = judgments.length ? `${some(judgments.length, "judgment")}: what was asked and answered` : "No judgments";
  const note = make("p", { className: "quiet", textContent: "#1 is the first document as it came." });
  return make("details", {}, make("summary", { textContent: said }), note, make("div", { className: "scroll" }, table));
}

function column(answer, documents, other) {
  const warnings = (answer.meta.warnings || []).map((w) => make("p", { className: "warning", textContent: w }));
  const rows = answer.results.map((result, place) => item(result, place, answer, documents, other));
  return make("article", { className: "card" }, make("h2", { textContent: answer.model }),
    make("p", { className: "quiet", textContent: describe(answer.model) }), bill(answer),
    ...warnings, make("ol", { className: "ranked" }, ...rows), comparisons(answer));
}

function agreement(first, second) {
  const places = (answer) => new Map(answer.results.map((r, place) => [r.index, place]));
  const [a, b] = [places(first), places(second)];
  const shared = [...a.keys()].filter((index) => b.has(index));
  let same = 0, pairs = 0;
  shared.forEach((x, i) => shared.slice(i + 1).forEach((y) => {
    pairs += 1;
    same += (a.get(x) - a.get(y)) * (b.get(x) - b.get(y)) > 0;
  }));
  const best = first.results[0] && second.results[0] && first.results[0].index === second.results[0].index;
  const top = best ? "Both put the same document first" : "They put different documents first";
  const rest = pairs ? `; they agree on ${number(100 * same / pairs)} % of ${number(pairs)} pairs` : "";
  return `${top}${rest}.`;
}

function unclamp() {
  for (const text of document.querySelectorAll(".text")) {
    if (text.scrollHeight <= text.clientHeight + 1) continue;
    const more = make("button", { type: "button", className: "more", textContent: "show all" });
    more.addEventListener("click", () => {
      more.textContent = text.classList.toggle("whole") ? "show less" : "show all";
    });
    text.parentElement.querySelector(".facts").append(more);
  }
}

function show(answers, documents, query) {
  $("empty").hidden = true;
  $("asked").hidden = false;
  $("asked").textContent = `${some(documents.length, "document")} ranked for “${query}”`;
  $("columns").className = answers.length > 1 ? "two" : "";
  $("columns").replaceChildren(...answers.map((answer, i) =>
    column(answer, documents, answers.length > 1 ? answers[1 - i] : null)));
  $("agreement").hidden = answers.length < 2;
  $("agreement").textContent = answers.length > 1 ? agreement(...answers) : "";
  unclamp();
}

function highlight(event) {
  const row = event.target.closest(".ranked li");
  const wanted = event.type === "mouseover" && row ? row.dataset.index : null;
  for (const other of document.querySelectorAll("#columns.two .ranked li")) {
    other.classList.toggle("same", other.dataset.index === wanted);
  }
}
