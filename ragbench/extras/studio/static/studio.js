/* Keys and small comforts. Every page works without: links are links, forms are forms. */

const typing = (target) => target.closest("input, textarea, select") !== null;

/* A key presses what carries its name: a link or a button with data-key. */
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || typing(event.target)) return;
  const wanted = [...document.querySelectorAll("[data-key]")].find((element) => element.dataset.key === event.key.toLowerCase());
  if (wanted) {
    event.preventDefault();
    wanted.click();
  }
});

/* A form is sent once. */
for (const form of document.querySelectorAll("form[data-once]")) {
  form.addEventListener("submit", (event) => {
    if (form.classList.contains("busy")) event.preventDefault();
    form.classList.add("busy");
  });
}
