// On a phone, cards show all metrics on demand. Judges ticked in the table can be compared on another page.
document.addEventListener("click", (event) => {
  const figures = event.target.closest?.(".show-figures");
  const table = document.getElementById("board-table");
  if (figures) figures.setAttribute("aria-pressed", String(table.classList.toggle("all-figures")));
});

// The address of this server, in the lines of Python.
function showOrigin() {
  for (const place of document.querySelectorAll("[data-origin]")) place.textContent = window.location.origin + arbPath("");
}
showOrigin();
document.addEventListener("htmx:afterSettle", showOrigin);

// A rank opens a note on pointing, focus and tap: it names the judges from which the row is separated. Escape and a tap
// elsewhere close it; the pointer may move onto it.
(() => {
  let note = null;
  let owner = null;

  function close() {
    note?.remove();
    owner?.removeAttribute("aria-describedby");
    note = owner = null;
  }

  function numbersIn(spans) {
    return spans.split(" ").filter(Boolean).flatMap((span) => {
      const [low, high = low] = span.split("-").map(Number);
      return Array.from({ length: high - low + 1 }, (_, step) => low + step);
    });
  }

  function open(button) {
    if (owner === button) return;
    close();
    owner = button;
    const names = JSON.parse(button.closest("table").dataset.ranked ?? "[]");
    const apart = names.length ? numbersIn(button.dataset.apart ?? "") : [];
    note = document.createElement("div");
    note.id = "rank-note";
    note.className = "rank-note";
    note.setAttribute("role", "tooltip");
    const listed = (words, numbers) => numbers.length ? [`${words} ${numbers.map((number) => names[number]).join(", ")}.`] : [];
    const own = Number(button.dataset.place) - 1;
    const lines = [
      `${button.getAttribute("aria-label").replace(":", " is the")}.`,
      ...listed("Better than", apart.filter((number) => number > own)),
      ...listed("Worse than", apart.filter((number) => number < own)),
    ];
    const rest = names.length - 1 - apart.length;
    if (rest > 0) lines.push(`Its difference from the ${apart.length ? "other " : ""}${rest} may be chance.`);
    for (const line of lines) note.append(Object.assign(document.createElement("p"), { textContent: line }));
    button.closest("main").append(note);
    button.setAttribute("aria-describedby", note.id);
    place();
  }

  function place() {
    const at = owner.getBoundingClientRect();
    const below = window.innerHeight - at.bottom;
    if (below < 0 || at.top < 0) return close();
    note.style.left = `${Math.max(8, Math.min(at.left, window.innerWidth - note.offsetWidth - 8))}px`;
    note.style.top = `${below > note.offsetHeight + 8 ? at.bottom : Math.max(8, at.top - note.offsetHeight)}px`;
  }

  for (const kind of ["pointerover", "focusin", "click"])
    document.addEventListener(kind, (event) => {
      const button = event.target.closest?.("#board-table .range");
      if (button) open(button);
      else if (owner && document.activeElement !== owner && !note.contains(event.target)) close();
    });
  document.addEventListener("pointerdown", (event) => {
    if (owner && !owner.contains(event.target) && !note.contains(event.target)) close();
  });
  document.addEventListener("focusout", (event) => { if (event.target === owner) close(); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  document.addEventListener("scroll", () => { if (owner) place(); }, true);
  document.addEventListener("htmx:beforeSwap", close);
})();

// A bar shows how many judges are ticked.
(() => {
  const MOST = 5;
  const picked = new Map(); // row id -> name
  let bar = null;

  function show() {
    if (picked.size === 0) {
      bar?.remove();
      bar = null;
      return;
    }
    if (!bar) {
      bar = document.createElement("div");
      bar.className = "pick-bar";
      bar.setAttribute("role", "status");
      bar.innerHTML = "<span class='pick-names'></span><a class='button primary small'>Compare</a><button type='button' class='button small'>Clear</button>";
      bar.querySelector("button").addEventListener("click", () => { picked.clear(); tick(); show(); });
      document.body.append(bar);
    }
    const ids = [...picked.keys()].map((id) => encodeURIComponent(id).replaceAll("%2F", "/"));
    const link = bar.querySelector("a");
    const names = [...picked.values()].join(", ");
    bar.querySelector(".pick-names").textContent =
      picked.size === 1 ? `${names}: choose another judge to compare` : picked.size === MOST ? `${names} (at most ${MOST})` : names;
    link.hidden = picked.size < 2;
    link.href = arbPath(`/compare?judges=${ids.join(",")}`);
  }

  function tick() {
    for (const box of document.querySelectorAll("#board-table .pick")) {
      box.checked = picked.has(box.value);
      box.disabled = picked.size >= MOST && !box.checked;
    }
  }

  document.addEventListener("change", (event) => {
    const box = event.target.closest?.("#board-table .pick");
    if (!box) return;
    if (box.checked) picked.set(box.value, box.closest("th").querySelector(".name").textContent);
    else picked.delete(box.value);
    tick();
    show();
  });
  document.addEventListener("htmx:afterSettle", tick); // keeps judges ticked in a new table
})();

// On a touch screen, a tap shows what pointing shows: the title of a cell or a word, and a point's name and metrics
// with a link to its judge. A tap elsewhere, scrolling and Escape close it.
(() => {
  let note = null;
  const close = () => { note?.remove(); note = null; };
  const isTouch = (event) => event.pointerType ? event.pointerType === "touch" : matchMedia("(hover: none)").matches;

  document.addEventListener("click", (event) => {
    if (note?.contains(event.target)) return;
    close();
    if (!isTouch(event)) return;
    const point = event.target.closest?.(".board-plot .point, .history-line");
    const titled = point ?? (event.target.closest?.("a, button, input, label, select, summary") ? null : event.target.closest?.("#board [title]"));
    if (!titled) return;
    if (point) event.preventDefault();
    note = document.createElement("div");
    note.className = "tap-note";
    note.setAttribute("role", "status");
    document.body.append(note);
    for (const line of (point ? point.querySelector("title").textContent : titled.title).split("\n"))
      note.append(Object.assign(document.createElement("p"), { textContent: line }));
    if (point?.href?.baseVal)
      note.append(Object.assign(document.createElement("a"), { href: point.href.baseVal, textContent: "Open the judge's page" }));
    const at = (point?.querySelector(".mark, circle") ?? titled).getBoundingClientRect();
    note.style.left = `${Math.max(8, Math.min(at.left, window.innerWidth - note.offsetWidth - 8))}px`;
    const isBelow = window.innerHeight - at.bottom > note.offsetHeight + 16;
    note.style.top = `${isBelow ? at.bottom + 8 : Math.max(8, at.top - note.offsetHeight - 8)}px`;
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  document.addEventListener("scroll", close, true);
  document.addEventListener("htmx:beforeSwap", close);
})();
