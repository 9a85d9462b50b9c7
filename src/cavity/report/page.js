// The controls above the charts, and tables that can be sorted.
const about = JSON.parse(document.querySelector("main").dataset.about);
const charts = [...document.querySelectorAll("svg[data-lines]")].map((svg) => new Chart(svg, about));
const by = (id) => document.getElementById(id);
const chips = [...document.querySelectorAll(".chip input")];
const KEY = "cavity report " + document.title;
const fresh = () => ({ hidden: new Set(), time: false, logX: false, logY: false, mean: false, smooth: 0 });
let state = fresh();

const store = () => {
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ ...state, hidden: [...state.hidden] }));
  } catch { /* a browser that keeps nothing */ }
};
const stored = () => {
  try {
    const found = JSON.parse(sessionStorage.getItem(KEY));
    return found && { ...fresh(), ...found, hidden: new Set(found.hidden.filter((run) => run < about.runs.length)) };
  } catch {
    return null;
  }
};
const isFresh = () => !state.hidden.size && !state.time && !state.logX && !state.logY && !state.mean && !state.smooth;

const update = () => {
  const pressed = {
    "by-epoch": !state.time, "by-time": state.time, "log-x": state.logX, "log-y": state.logY,
    "by-run": !state.mean, "by-seed": state.mean,
  };
  for (const [id, on] of Object.entries(pressed)) by(id)?.setAttribute("aria-pressed", on);
  for (const chip of chips) chip.checked = !state.hidden.has(Number(chip.dataset.run));
  const slider = by("smooth");
  slider.value = state.smooth;
  slider.parentElement.querySelector("output").textContent = Number(state.smooth).toFixed(2).replace(/\.?0+$/, "") || "0";
  by("reset").hidden = isFresh();
  for (const node of document.querySelectorAll("figure[data-run], tr[data-run]"))
    node.classList.toggle("off", state.hidden.has(Number(node.dataset.run)));
  for (const chart of charts) chart.draw(state);
  store();
};
const on = (id, change) => by(id)?.addEventListener("click", () => { change(); update(); });
on("by-epoch", () => { state.time = false; });
on("by-time", () => { state.time = true; });
on("log-x", () => { state.logX = !state.logX; });
on("log-y", () => { state.logY = !state.logY; });
on("by-run", () => { state.mean = false; });
on("by-seed", () => { state.mean = true; });
on("all", () => { state.hidden.clear(); });
on("none", () => { state.hidden = new Set(about.runs.keys()); });
on("reset", () => { state = fresh(); });
by("smooth").addEventListener("input", (event) => { state.smooth = Number(event.target.value); update(); });
for (const chip of chips)
  chip.addEventListener("change", () => {
    state.hidden[chip.checked ? "delete" : "add"](Number(chip.dataset.run));
    update();
  });
for (const part of document.querySelectorAll("[data-scripted]")) part.hidden = false;

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const numbers = [...body.rows].some((row) => row.cells[column].dataset.value !== undefined);
      const known = (row) => !numbers || row.cells[column].dataset.value !== undefined;
      const compare = (a, b) => numbers
        ? Number(a.cells[column].dataset.value) - Number(b.cells[column].dataset.value)
        : a.cells[column].textContent.localeCompare(b.cells[column].textContent, undefined, { numeric: true });
      // What is missing stays at the end, whichever way.
      const order = [...body.rows].sort((a, b) =>
        known(b) - known(a) || (known(a) ? (down ? -1 : 1) * compare(a, b) : 0));
      body.append(...order);
    });
  });
}

state = stored() || state;
if (!isFresh()) update();
