// On a phone, cards show all metrics on demand. Judges ticked in the table can be compared on another page.
document.addEventListener("click", (event) => {
  const figures = event.target.closest?.(".show-figures");
  const table = document.getElementById("board-table");
  if (figures) figures.setAttribute("aria-pressed", String(table.classList.toggle("all-figures")));
});

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
    link.href = `/compare?judges=${ids.join(",")}`;
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
