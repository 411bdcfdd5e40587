"use strict";
// Everything that comes from the service is set as text, never as HTML.
const part = (id) => document.getElementById(id);
const TOKEN = "ragbench-token";

async function ask(path, body) {
  const headers = body ? { "content-type": "application/json" } : {};
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.authorization = "Bearer " + token;
  const answer = await fetch(path, body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers });
  const told = await answer.json().catch(() => ({ error: "the answer cannot be read" }));
  part("known").hidden = answer.status !== 401;
  if (!answer.ok) throw new Error(told.error);
  return told;
}

function made(kind, name, text) {
  const element = document.createElement(kind);
  element.className = name;
  element.textContent = text;
  return element;
}

function shown(hit) {
  const item = document.createElement("li");
  const lines = "lines " + hit.start_line + " to " + hit.end_line;
  const text = made("p", "text", hit.context ?? hit.text);
  text.tabIndex = 0;
  item.append(
    made("h2", "", [hit.title, ...hit.header_path].filter((word, place, all) => word && word !== all[place - 1]).join(" › ")),
    made("p", "place", [hit.path, lines, hit.matches.join(", ")].filter(Boolean).join(" · ")),
    text,
  );
  return item;
}

async function search() {
  const query = part("query").value.trim();
  if (!query) return;
  part("said").textContent = "Searching …";
  try {
    const answer = await ask("search", { query });
    part("hits").replaceChildren(...answer.hits.map(shown));
    part("said").textContent = answer.hits.length
      ? answer.hits.length + " of " + answer.total + " hits in " + Math.round(answer.took_ms) + " ms"
      : "Nothing was found.";
  } catch (error) {
    part("hits").replaceChildren();
    part("said").textContent = error.message;
  }
}

async function introduce() {
  try {
    const about = await ask("health");
    part("name").textContent = "Search " + about.documents + " documents";
    part("about").textContent = about.bundle + ", version " + about.version + (about.refreshed ? ", refreshed " + about.refreshed : "");
    part("said").textContent = "";
  } catch (error) {
    part("said").textContent = error.message;
  }
}

part("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  history.replaceState(null, "", "#" + encodeURIComponent(part("query").value));
  search();
});
part("known").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN, part("token").value.trim());
  part("token").value = "";
  introduce().then(search);
});
try {
  part("query").value = decodeURIComponent(location.hash.slice(1));
} catch {
  part("query").value = "";
}
introduce().then(search);
