"use strict";
/* Draws the figures and runs the query explorer. Text of documents becomes text nodes, never markup. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const element = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  /* Figures take ink and lines from the page, again when the reader's scheme changes. */
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const narrow = () => window.innerWidth < 640;
  function draw() {
    for (const place of document.querySelectorAll(".plot")) {
      const figure = data.figures[place.dataset.figure];
      const layout = structuredClone(figure.layout);
      const traces = structuredClone(figure.data);
      layout.font = { ...layout.font, color: color("--ink"), size: narrow() ? 11 : 13 };
      layout.hoverlabel = { bgcolor: color("--card"), bordercolor: color("--line"), font: { color: color("--ink") } };
      // Names of series stand one below the other where there is no room beside.
      if (narrow() && traces.length > 2) layout.height += 20 * traces.length;
      for (const key of Object.keys(layout).filter((each) => /^[xy]axis/.test(each))) {
        layout[key] = { ...layout[key], linecolor: color("--line"), tickcolor: color("--line") };
      }
      for (const trace of traces) {
        if (trace.type === "heatmap") trace.colorscale[1][1] = color("--stripe");
        if (trace.type === "bar") trace.marker = { ...trace.marker, line: { color: color("--card"), width: 1 } };
      }
      Plotly.react(place, traces, layout, {
        responsive: true,
        displaylogo: false,
        displayModeBar: "hover",
        modeBarButtons: [["toImage"]],
        toImageButtonOptions: { format: "svg", filename: place.dataset.figure },
        doubleClick: false,
      });
    }
  }
  draw();
  scheme.addEventListener("change", draw);

  /* The explorer. */
  const { arms, measures, queries } = data.explorer;
  const [left, right, measure, sort, type, words] = ["left", "right", "measure", "sort", "type", "words"].map(byId);
  const body = byId("explorer").tBodies[0];
  const PAGE = 100;
  let shown = PAGE;
  let current = 0;

  const number = (value, digits = 3) => (value === null ? "–" : value.toFixed(digits).replace("-", "−"));
  const signed = (value) => (value === null ? "–" : (value > 0 ? "+" : "") + number(value));

  function fill(select, names, chosen) {
    select.replaceChildren(...names.map(([value, text]) => element("option", { value, textContent: text })));
    select.value = String(chosen);
  }
  fill(left, arms.map((arm, n) => [n, arm]), 0);
  fill(right, arms.map((arm, n) => [n, arm]), arms.length - 1);
  fill(measure, measures.map((name, n) => [n, name]), 0);
  const types = [...new Set(queries.map((query) => query.type))].sort();
  fill(type, [["", "all"], ...types.map((name) => [name, name])], "");

  function chosenRows() {
    const [a, b, m] = [left, right, measure].map((select) => Number(select.value));
    const wanted = words.value.trim().toLowerCase();
    const rows = queries
      .filter((query) => !type.value || query.type === type.value)
      .filter((query) => !wanted || `${query.qid} ${query.text}`.toLowerCase().includes(wanted))
      .map((query) => {
        const [one, other] = [query.values[m][a], query.values[m][b]];
        return { query, one, other, change: one === null || other === null ? null : other - one };
      });
    const last = (value, key) => (value === null ? -Infinity : key(value));
    const keys = {
      change: (row) => last(row.change, Math.abs),
      gain: (row) => last(row.change, (value) => value),
      loss: (row) => last(row.change, (value) => -value),
      low: (row) => last(row.other, (value) => -value),
      qid: () => 0,
    };
    const key = keys[sort.value];
    const byName = (x, y) => x.query.qid.localeCompare(y.query.qid, "en", { numeric: true });
    return rows.sort((x, y) => {
      const [ours, theirs] = [key(x), key(y)];
      return ours === theirs ? byName(x, y) : theirs - ours;
    });
  }

  function gauge(change) {
    const bar = element("span", { className: "gauge", ariaHidden: "true" });
    if (change) {
      const fillBar = element("i", { className: change < 0 ? "down" : "" });
      const width = Math.min(50, 50 * Math.abs(change));
      fillBar.style.width = `${width}%`;
      fillBar.style.left = change < 0 ? `${50 - width}%` : "50%";
      bar.append(fillBar);
    }
    return bar;
  }

  function show() {
    const rows = chosenRows();
    const names = [arms[left.value], arms[right.value]];
    byId("left-head").textContent = names[0];
    byId("right-head").textContent = names[1];
    const known = rows.filter((row) => row.change !== null);
    const count = (test) => known.filter((row) => test(row.change)).length;
    const mean = known.length ? known.reduce((sum, row) => sum + row.change, 0) / known.length : null;
    byId("summary").textContent =
      `${rows.length} ${rows.length === 1 ? "query" : "queries"}: '${names[1]}' is better on ${count((c) => c > 1e-9)}, ` +
      `equal on ${count((c) => Math.abs(c) <= 1e-9)}, worse on ${count((c) => c < -1e-9)}; ` +
      `mean difference in ${measures[measure.value]} ${signed(mean)}.`;
    current = 0;
    body.replaceChildren(
      ...rows.slice(0, shown).map((row, place) => {
        const { query } = row;
        const button = element(
          "button",
          { type: "button", className: "open", tabIndex: place ? -1 : 0, ariaExpanded: "false" },
          element("span", {}, element("span", { className: "text", textContent: query.text }),
            " ", element("span", { className: "qid", textContent: query.qid })),
        );
        button.query = query;
        return element(
          "tr", {},
          element("th", { scope: "row" }, button),
          element("td", { textContent: query.type }),
          element("td", { textContent: number(row.one) }),
          element("td", { textContent: number(row.other) }),
          element("td", {}, signed(row.change), gauge(row.change)),
        );
      }),
    );
    const rest = rows.length - shown;
    byId("more").replaceChildren();
    if (rest > 0) {
      const button = element("button", { type: "button", textContent: `Show ${rest} more` });
      button.addEventListener("click", () => {
        const next = shown;
        shown = Infinity;
        show();
        focus(next);
      });
      byId("more").append(button);
    }
  }

  const buttons = () => [...body.querySelectorAll(".open")];
  function focus(place) {
    const all = buttons();
    if (!all.length) return;
    all[current]?.setAttribute("tabindex", "-1");
    current = Math.max(0, Math.min(all.length - 1, place));
    all[current].tabIndex = 0;
    all[current].focus();
  }

  /* A narrow screen hides columns; a cell that spans more than there are would make room for them. */
  const columnsShown = () => [...byId("explorer").tHead.rows[0].cells].filter((cell) => cell.offsetWidth).length;
  matchMedia("(max-width: 48rem)").addEventListener("change", () => {
    for (const cell of body.querySelectorAll(":scope > .detail > td")) cell.colSpan = columnsShown();
  });

  function close(button) {
    button.ariaExpanded = "false";
    const next = button.closest("tr").nextElementSibling;
    if (next?.classList.contains("detail")) next.remove();
  }
  function toggle(button) {
    if (button.ariaExpanded === "true") return close(button);
    button.ariaExpanded = "true";
    const cell = element("td", { colSpan: columnsShown() }, ...detail(button.query));
    button.closest("tr").after(element("tr", { className: "detail" }, cell));
  }
  body.addEventListener("click", (event) => {
    const button = event.target.closest(".open");
    if (!button) return;
    focus(buttons().indexOf(button));
    toggle(button);
  });
  body.addEventListener("keydown", (event) => {
    const row = event.target.closest("tr");
    if (event.key === "Escape") {
      const owner = row.classList.contains("detail") ? row.previousElementSibling : row;
      const button = owner.querySelector(".open");
      close(button);
      focus(buttons().indexOf(button));
      return;
    }
    if (!event.target.classList.contains("open")) return;
    const all = buttons();
    const place = all.indexOf(event.target);
    const to = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    focus(to);
  });

  function detail(query) {
    const m = Number(measure.value);
    const sides = left.value === right.value ? [Number(left.value)] : [Number(left.value), Number(right.value)];
    const made = [];
    if (query.need) made.push(element("p", { className: "need", textContent: query.need }));
    if (arms.length > 2) {
      made.push(element("ul", { className: "strip", ariaLabel: `${measures[m]} of every configuration` },
        ...arms.map((arm, n) => element("li", {
          className: sides.includes(n) ? "chosen" : "",
          textContent: `${arm} ${number(query.values[m][n])}`,
        }))));
    }
    if (query.hits) {
      const columns = sides.map((arm) => side(query, arm, sides.find((each) => each !== arm)));
      made.push(element("div", { className: sides.length > 1 ? "sides" : "sides one" }, ...columns));
    } else {
      made.push(element("p", { className: "need", textContent: data.explorer.texts
        ? `This report keeps the results of the ${data.explorer.texts} queries on which configurations differ most; this is not one of them.`
        : "This run did not keep its results as text: run it again to see them here." }));
    }
    if (query.lost) made.push(missed(query, sides));
    return made;
  }

  function side(query, arm, other) {
    const value = query.values[Number(measure.value)][arm];
    const head = element("h4", {}, element("span", { textContent: arms[arm] }),
      element("span", { textContent: `${measures[measure.value]} ${number(value)}` }));
    const docno = ([passage]) => query.passages[passage][0];
    const rankIn = (which, name) => query.hits[which].findIndex((hit) => docno(hit) === name) + 1;
    const items = query.hits[arm].map((hit, place) => {
      const [passage, score] = hit;
      const [name, title, headings, snippet, document, section] = query.passages[passage];
      const before = rankIn(arm, name);
      let moved = "";
      if (before < place + 1) moved = `same document as ${before}`;
      else if (other !== undefined) {
        const there = rankIn(other, name);
        moved = there ? `rank ${there} in '${arms[other]}'` : `not in '${arms[other]}'`;
      }
      const trail = headings.startsWith(title) ? headings : [title, headings].filter(Boolean).join(" > ");
      return element("li", { className: document === null ? "" : document > 0 ? "yes" : "no", title: `score ${score}` },
        element("div", { className: "head" },
          element("span", { className: "rank", textContent: `${place + 1}` }),
          element("span", { className: "title", textContent: trail.split(" > ").join(" › ") })),
        element("div", { className: "place" },
          ...(document === null && section === null ? [badge("", null)] : [badge("document ", document), badge("section ", section)]),
          element("span", { className: "docno", textContent: moved ? `${name} · ${moved}` : name })),
        element("p", { className: "snippet" }, ...highlighted(snippet, query.stems)));
    });
    const list = items.length
      ? element("ol", { className: "hits" }, ...items)
      : element("p", { className: "need", textContent: "It returned no results." });
    return element("section", {}, head, list);
  }

  function badge(what, grade) {
    const kind = grade === null ? "unknown" : grade > 0 ? "yes" : "no";
    return element("span", { className: `grade ${kind}`, textContent: `${what}${grade === null ? "unjudged" : grade}` });
  }

  const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  function highlighted(text, stems) {
    if (!stems.length) return [text];
    const matches = new RegExp(`(?<![\\p{L}\\p{N}])(?:${stems.map(escaped).join("|")})[\\p{L}\\p{N}]*`, "giu");
    const parts = [];
    let from = 0;
    for (const match of text.matchAll(matches)) {
      parts.push(text.slice(from, match.index), element("mark", { textContent: match[0] }));
      from = match.index + match[0].length;
    }
    return [...parts, text.slice(from)];
  }

  function missed(query, sides) {
    const rows = query.lost.map(([section, grade, fates]) => element("tr", {},
      element("th", { scope: "row", textContent: section }),
      element("td", { textContent: grade }),
      ...sides.map((arm) => element("td", {
        textContent: fates[arm],
        className: fates[arm].startsWith("found") ? "fate-found" : "fate-lost",
      }))));
    const heads = ["Relevant", "Grade", ...sides.map((arm) => arms[arm])];
    return element("div", { className: "scroll missed" }, element("table", {},
      element("caption", { textContent: "Where relevant documents were lost" }),
      element("thead", {}, element("tr", {}, ...heads.map((text) => element("th", { scope: "col", textContent: text })))),
      element("tbody", {}, ...rows)));
  }

  for (const control of [left, right, measure, sort, type]) control.addEventListener("change", () => show());
  words.addEventListener("input", () => show());
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  show();

})();
