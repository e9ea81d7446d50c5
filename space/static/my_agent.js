// Draws runs and sends their labels without leaving the page, so that the chosen files stay chosen, and keeps the
// labels in this browser by the run's id. They can be saved as a file for `arb leaderboard estimate --labels`.
(() => {
  const KEPT = "arb-my-agent-labels";
  const form = document.querySelector("form.own-agent");
  if (!form) return;

  const runs = () => [...form.querySelectorAll(".drawn-run")];
  const chosen = (run) => run.querySelector("input:checked");

  function kept() {
    try { return JSON.parse(localStorage.getItem(KEPT)) ?? {}; } catch { return {}; }
  }

  function keep(labels) {
    try { localStorage.setItem(KEPT, JSON.stringify(labels)); } catch { /* then a reload loses them */ }
  }

  function count() {
    const done = runs().filter(chosen).length;
    const place = form.querySelector(".labelled-count");
    if (place) place.textContent = `${done} of ${runs().length} labelled`;
    for (const button of form.querySelectorAll(".clear-labels, .save-labels")) button.hidden = !done;
  }

  function restore() { // labels on the page are newer than those that were kept
    const labels = kept();
    for (const run of runs()) {
      const field = chosen(run) ?? run.querySelector(`input[value="${CSS.escape(labels[run.dataset.run] ?? "")}"]`);
      if (!field) continue;
      field.checked = true;
      labels[run.dataset.run] = field.value;
    }
    keep(labels);
    count();
  }

  function show(page) {
    for (const id of ["labelling", "own-result"]) {
      const found = page.getElementById(id);
      document.getElementById(id).replaceWith(document.adoptNode(found));
    }
    restore();
    const result = document.getElementById("own-estimate");
    const target = result ?? form.querySelector("#step-labels");
    (target?.querySelector("h2") ?? target)?.focus({ preventScroll: true });
    target?.scrollIntoView({ block: "start" });
  }

  function refuse(text) {
    const notice = document.createElement("div");
    notice.id = "own-estimate";
    notice.className = "notice bad";
    notice.setAttribute("role", "alert");
    notice.textContent = text;
    document.getElementById("own-result").replaceChildren(notice);
    notice.scrollIntoView({ block: "center" });
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.submitter ?? form.querySelector("button[type=submit]");
    const body = new FormData(form);
    body.set("step", button.value);
    form.setAttribute("aria-busy", "true");
    button.disabled = true;
    try {
      const answer = await fetch(form.action, { method: "POST", body, credentials: "same-origin", headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (page.getElementById("own-result")) show(page);
      else refuse(page.querySelector("main .lead")?.textContent ?? `The server responded with status ${answer.status}. Try again.`);
    } catch {
      refuse("The server does not respond, or a file changed after you chose it. Choose the files again and retry; your labels are kept.");
    } finally {
      form.removeAttribute("aria-busy");
      button.disabled = false;
    }
  });

  form.addEventListener("change", (event) => {
    const run = event.target.closest(".drawn-run");
    if (!run) return;
    keep({ ...kept(), [run.dataset.run]: event.target.value });
    count();
  });

  form.addEventListener("toggle", async (event) => { // the steps of a run are loaded when they are opened
    const list = event.target.querySelector(".run-steps-list");
    if (!list || !event.target.open || list.childElementCount) return;
    list.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(event.target.dataset.steps, { credentials: "same-origin" });
      if (answer.ok) list.innerHTML = await answer.text();
      else list.textContent = await answer.text();
    } catch {
      list.textContent = "The steps could not be loaded. Close and open this to try again.";
    }
    list.removeAttribute("aria-busy");
  }, true);

  form.addEventListener("click", (event) => {
    if (!event.target.closest(".clear-labels")) return;
    for (const field of form.querySelectorAll(".drawn-run input:checked")) field.checked = false;
    try { localStorage.removeItem(KEPT); } catch { /* nothing was kept */ }
    count();
  });

  form.addEventListener("click", (event) => {
    if (!event.target.closest(".save-labels")) return;
    const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
    const rows = runs().filter(chosen).map((run) => `${quoted(run.dataset.run)},${chosen(run).value}\n`);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`trajectory_id,${form.dataset.target}\n`, ...rows], { type: "text/csv" }));
    link.download = "labels.csv";
    link.click();
    URL.revokeObjectURL(link.href);
  });

  document.addEventListener("keydown", (event) => { // outside of all runs, a key labels the first one without a label
    const first = event.target.closest("input, select, textarea") ? null : runs().find((each) => !chosen(each));
    const run = event.target.closest(".drawn-run") ?? first;
    const field = run?.querySelector(`input[data-key="${CSS.escape(event.key)}"]`);
    if (!field || event.metaKey || event.ctrlKey || event.altKey) return;
    event.preventDefault();
    field.checked = true;
    field.dispatchEvent(new Event("change", { bubbles: true }));
    const next = runs()[runs().indexOf(run) + 1];
    const target = next ? chosen(next) ?? next.querySelector("input") : form.querySelector(".labelling-bar .primary");
    target.focus({ preventScroll: true });
    (next ?? target).scrollIntoView({ block: "nearest" });
  });

  restore();
})();
