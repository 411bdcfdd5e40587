/* Keys and small comforts. Every page works without: links are links, forms are forms. */

const typing = (target) => target.closest("input:not([type=checkbox]), textarea, select") !== null;

/* A key presses what carries its name: a link or a button with data-key. */
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || typing(event.target)) return;
  const wanted = [...document.querySelectorAll("[data-key]")].find((each) => each.dataset.key === event.key.toLowerCase());
  if (wanted) {
    event.preventDefault();
    wanted.click();
  }
});

/* The list of topics stays where the chosen one is seen. */
const chosen = document.querySelector("#topics tr.chosen");
const list = chosen?.closest(".tall");
if (list) list.scrollTop = chosen.offsetTop - list.clientHeight / 3;

/* Rows are filtered while words are typed; the form asks for the rest. */
const words = document.getElementById("words");
const board = document.getElementById("board");
words?.addEventListener("input", () => {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of board.tBodies[0].rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !row.classList.contains("pinned") && !wanted.every((word) => text.includes(word));
  }
});

/* A form is sent once. */
for (const form of document.querySelectorAll("form[data-once]")) {
  form.addEventListener("submit", (event) => {
    if (form.classList.contains("busy")) event.preventDefault();
    form.classList.add("busy");
  });
}
