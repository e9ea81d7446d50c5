// The leaderboard at the reader's choice: the form sets the address, the address brings table and plots.
window.arbBoard = (() => {
  const form = document.getElementById("board-form");
  if (!form) return undefined;
  const plots = []; // what asks for a plot anew, once it has been near
  let loading = null;
  let waiting = 0;

  const controls = JSON.parse(form.dataset.address);
  arbAddress.open(controls);

  // The form

  function valueOf(control) {
    const fields = [...form.elements].filter((field) => field.name === control.name);
    const checked = fields.filter((field) => field.checked).map((field) => field.value);
    if (control.shape === "flag") return checked.length > 0;
    if (control.shape === "many") return checked;
    if (fields[0]?.type === "radio") return checked[0] ?? control.default;
    return fields[0]?.value ?? control.default;
  }

  function chosen(event) {
    if (event.target.form !== form) return; // one of its fields stands below the table
    const control = controls.find((one) => one.name === event.target.name);
    if (!control) return;
    window.clearTimeout(waiting);
    const tell = () => arbAddress.choose(control.name, valueOf(control));
    if (event.type === "input" && control.shape === "text") waiting = window.setTimeout(tell, 200);
    else tell();
    describeMenus();
  }

  function describeMenus() {
    for (const menu of form.querySelectorAll(".menu")) {
      const texts = [...menu.querySelectorAll("input:checked")].map((field) => field.nextElementSibling.textContent);
      const shown = menu.querySelector(".menu-text");
      shown.textContent = texts.length === 0 ? shown.dataset.everything
        : texts.length === 1 ? texts[0] : `${texts[0]} +${texts.length - 1}`;
    }
  }

  function closeMenus(except = null) {
    for (const menu of form.querySelectorAll(".menu[open]")) if (menu !== except) menu.open = false;
  }

  document.addEventListener("input", chosen);
  document.addEventListener("change", chosen);
  form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("click", (event) => closeMenus(event.target.closest?.(".menu")));
  document.addEventListener("focusin", (event) => closeMenus(event.target.closest?.(".menu")));
  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && form.querySelector(".menu[open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  document.body.classList.add("has-script");

  // The parts that a choice changes

  const region = (name) => document.querySelector(`[data-region="${name}"]`);

  async function load(search) {
    loading?.abort();
    loading = new AbortController();
    const { signal } = loading;
    region("board")?.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(`/parts/board${search}`, { signal });
      if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
      const parts = document.createElement("template");
      parts.innerHTML = await answer.text();
      for (const part of [...parts.content.children]) region(part.dataset.region)?.replaceWith(part);
      document.dispatchEvent(new CustomEvent("arb:board"));
      for (const ask of plots) ask(search.slice(1));
    } catch (problem) {
      if (signal.aborted) return;
      region("board").removeAttribute("aria-busy");
      tellProblem(search);
    }
  }

  function tellProblem(search) {
    const notice = document.createElement("div");
    notice.className = "notice bad";
    notice.setAttribute("role", "alert");
    notice.innerHTML = "<p><strong>The table could not be loaded.</strong> The server does not answer, or you are offline; below is what was shown before.</p><p><button type='button' class='button small'>Try again</button></p>";
    notice.querySelector("button").addEventListener("click", () => { notice.remove(); load(search); });
    region("board").querySelector(":scope > .notice")?.remove();
    region("board").prepend(notice);
  }

  document.addEventListener("arb:address", (event) => load(event.detail.search));

  // Long tables, and cards on a phone

  document.addEventListener("click", (event) => {
    const table = () => document.getElementById("board-table");
    const figures = event.target.closest?.(".show-figures");
    if (event.target.closest?.(".show-all")) {
      table().classList.remove("short");
      event.target.remove();
    } else if (figures) {
      figures.setAttribute("aria-pressed", String(table().classList.toggle("all-figures")));
    }
  });

  // Plots are asked for when they come near: who reads the table only does not wait for them.

  function watchPlot(element, ask) {
    const watcher = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      watcher.disconnect();
      plots.push(ask);
      ask(window.location.search.slice(1));
    }, { rootMargin: "700px 0px" });
    watcher.observe(element);
  }

  // A click on a point opens its judge.
  new MutationObserver(() => {
    for (const plot of document.querySelectorAll("#precision-recall .js-plotly-plot:not([data-linked])")) {
      if (!plot.on) continue;
      plot.dataset.linked = "yes";
      plot.on("plotly_click", ({ points }) => {
        const id = points[0]?.id;
        if (id && !id.startsWith("reference/")) window.location.assign(`/judge?id=${encodeURIComponent(id).replaceAll("%2F", "/")}`);
      });
    }
  }).observe(document.body, { childList: true, subtree: true });

  return { watchPlot };
})();
