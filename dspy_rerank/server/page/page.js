"use strict";
/* The form: what is asked, and what is said when it cannot be.
   Everything that comes from a document, a model or the service is set as text, never as HTML. */

const SAMPLE = {
  query: "What is the capital of France?",
  documents: [
    "Bananas are yellow and grow in clusters.",
    "France borders Spain, Italy, Germany and Belgium.",
    "Lyon is the third largest city of France.",
    "Paris has been the capital of France since 987.",
    "The capital of Germany is Berlin.",
  ],
};

let programs = [];

let running = null;

class Problem extends Error {}

async function call(path, body, signal) {
  const headers = { "content-type": "application/json" };
  const key = $("key").value.trim();
  if (key) headers.authorization = `Bearer ${key}`;
  const options = body ? { method: "POST", body: JSON.stringify(body) } : {};
  let response, value;
  try {
    response = await fetch(path, { ...options, headers, signal });
    value = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(response ? `The service answered ${response.status} without JSON.`
      : "The service cannot be reached.");
  }
  if (response.status === 401) {
    $("locked").hidden = false;
    throw new Problem("This service needs an API key.");
  }
  if (!response.ok) throw new Problem(value.message || `The service answered ${response.status}.`);
  return value;
}

function readDocuments() {
  const text = $("documents").value;
  const how = document.querySelector("input[name=split]:checked").value;
  if (how === "json") {
    if (!text.trim()) return [];
    let value;
    try {
      value = JSON.parse(text);
    } catch (error) {
      throw new Problem("Documents are not JSON: expected an array of texts or of objects with a text.");
    }
    if (!Array.isArray(value)) throw new Problem("Documents must be a JSON array.");
    return value;
  }
  const parts = text.split(how === "line" ? /\r?\n/ : /\r?\n[ \t]*\r?\n/);
  return parts.map((part) => part.trim()).filter((part) => part);
}

function countDocuments() {
  let said;
  try {
    const n = readDocuments().length;
    said = n ? some(n, "document") : "no documents";
  } catch (error) {
    said = "not a JSON array yet";
  }
  $("count").textContent = said;
}

function complain(error) {
  $("problem").textContent = error ? error.message : "";
  $("problem").hidden = !error;
}

function extraInputs() {
  const chosen = new Set([$("first").value, $("second").value]);
  const names = new Set(programs.filter((p) => chosen.has(p.name)).flatMap((p) => p.inputs));
  const before = Object.fromEntries([...$("extras").querySelectorAll("input")].map((i) => [i.name, i.value]));
  $("extras").replaceChildren(...[...names].map((name) => make("div", { className: "field" },
    make("label", { textContent: name, htmlFor: `extra-${name}` }),
    make("input", { id: `extra-${name}`, name, type: "text", value: before[name] || "" }))));
}

function inputsOf(name) {
  const program = programs.find((p) => p.name === name);
  const values = (program ? program.inputs : []).map((n) => [n, $(`extra-${n}`).value]);
  return values.length ? Object.fromEntries(values) : undefined;
}

async function loadPrograms() {
  programs = (await call("programs")).programs;
  const option = (p) => make("option", { value: p.name, textContent: p.name, title: describe(p.name) });
  const chosen = [$("first").value, $("second").value];
  $("first").replaceChildren(...programs.map(option));
  $("second").replaceChildren(make("option", { value: "", textContent: "nothing" }), ...programs.map(option));
  if (chosen[0]) [$("first").value, $("second").value] = chosen;
  $("second").disabled = programs.length < 2;
  extraInputs();
}

function busy(on) {
  $("go").disabled = on;
  $("go").textContent = on ? "Ranking…" : "Rank";
  $("stop").hidden = !on;
  $("results").setAttribute("aria-busy", on);
}

async function rank() {
  const documents = readDocuments();
  const query = $("query").value;
  if (!query.trim()) throw new Problem("Write a query first.");
  if (!documents.length) throw new Problem("Paste at least one document.");
  if ($("top").value && !$("top").validity.valid) throw new Problem("Top must be a whole number from 1.");
  if (!programs.length) await loadPrograms();
  const names = [$("first").value];
  if ($("second").value) names.push($("second").value);
  const ask = (model) => call("v2/rerank", {
    model, query, documents, explain: true, inputs: inputsOf(model),
    top_n: $("top").value ? Number($("top").value) : undefined,
  }, running.signal);
  show(await Promise.all(names.map(ask)), documents, query);
}

async function submit(event) {
  event.preventDefault();
  if (running) return;
  complain(null);
  running = new AbortController();
  busy(true);
  try {
    await rank();
  } catch (error) {
    running.abort();
    if (error.name !== "AbortError") complain(error);
  } finally {
    running = null;
    busy(false);
  }
}

function fillSample() {
  $("query").value = SAMPLE.query;
  document.querySelector("input[name=split][value=line]").checked = true;
  $("documents").value = SAMPLE.documents.join("\n");
  countDocuments();
  complain(null);
}

$("ask").addEventListener("submit", submit);
$("stop").addEventListener("click", () => running && running.abort());
$("sample").addEventListener("click", fillSample);
$("documents").addEventListener("input", countDocuments);
for (const radio of document.querySelectorAll("input[name=split]")) radio.addEventListener("change", countDocuments);
for (const select of [$("first"), $("second")]) select.addEventListener("change", extraInputs);
$("key").addEventListener("change", () => loadPrograms().then(() => complain(null), complain));
for (const kind of ["mouseover", "mouseout"]) $("columns").addEventListener(kind, highlight);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("ask").requestSubmit();
});
loadPrograms().catch(complain);
