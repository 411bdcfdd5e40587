/* How far an experiment is, from server-sent events; the page is loaded again when it has ended. */

const job = document.getElementById("job");
const byId = (id) => document.getElementById(id);
const time = (seconds) => (seconds >= 90 ? `${Math.round(seconds / 60)} min` : `${Math.max(1, Math.round(seconds))} s`);

function row(task) {
  const label = document.createElement("label");
  const bar = document.createElement("progress");
  bar.className = "bar";
  bar.max = Math.max(1, task.total);
  bar.value = task.done;
  const left = task.seconds_left ? `, about ${time(task.seconds_left)} left` : "";
  label.append(task.total ? `${task.name}: ${task.done} of ${task.total}${left}` : task.name, bar);
  return label;
}

if (job?.dataset.over === "no") {
  const events = new EventSource(`/experiments/${job.dataset.job}/events`);
  events.addEventListener("message", (event) => {
    const told = JSON.parse(event.data);
    byId("state").textContent = told.state;
    byId("seconds").textContent = told.seconds ? `${time(told.seconds)} so far` : "";
    byId("tasks").replaceChildren(...told.tasks.map(row));
    byId("lines").textContent = told.lines.join("\n");
    if (told.ended) {
      events.close();
      location.reload();
    }
  });
}
