// Reading a trajectory by keyboard: steps, tree and verdicts. Lists and other trajectories are plain links.
(() => {
  const here = () => document.querySelector(".trajectories");
  const PATH = here()?.dataset.path ?? arbPath("/trajectories"); // differs on the annotators' page
  const story = () => document.querySelector(".trajectories .story");
  const steps = () => [...document.querySelectorAll(".story .step")];
  const trees = new Map();

  // The URL ----------------------------------------------------------------------------------------------

  function go_to(address) {
    window.history.replaceState(null, "", address);
    if (window.parent !== window) { // on huggingface.co the Space is in a frame: update the outer URL, too
      window.parent.postMessage({ queryString: window.location.search.slice(1), hash: "" }, "https://huggingface.co");
    }
  }

  // Measures the goal, since other sticky elements are placed below it.
  const heads = new ResizeObserver(([head]) => {
    const goal = head.target.querySelector(".story-goal");
    here()?.style.setProperty("--head", `${head.target.offsetHeight}px`);
    here()?.style.setProperty("--above", `${goal.getBoundingClientRect().top - head.target.getBoundingClientRect().top - 4}px`);
  });

  // Steps ------------------------------------------------------------------------------------------------

  function opened() {
    const read = story();
    if (!read) return;
    heads.disconnect();
    heads.observe(read.querySelector(".story-head"));
    fold(localStorage.getItem("arb-verdicts") === "folded");
    const text = read.querySelector(".goal-text");
    const more = read.querySelector(".goal-more");
    if (more) more.hidden = text.scrollHeight <= text.clientHeight + 2;
    show_strip(read);
    settle(Number(read.dataset.place));
  }

  function walk_to(place) {
    const all = steps();
    const next = Math.min(Math.max(1, place), all.length);
    if (next === Number(story().dataset.place)) return;
    const query = new URLSearchParams(window.location.search);
    const rest = window.location.search.slice(1).split("&").filter((part) => !part.startsWith("step="));
    if (query.has("id") || query.has("item")) go_to(`${PATH}?${[...rest, ...(next > 1 ? [`step=${next}`] : [])].join("&")}`);
    for (const step of all) step.hidden = Number(step.dataset.place) !== next;
    story().dataset.place = String(next);
    document.getElementById("step-told").textContent = `Step ${next} of ${all.length}`;
    settle(next);
  }

  // Loads the strip's pictures after the large one, which they would otherwise delay on the server.
  function show_strip(read) {
    const large = read.querySelector(".step:not([hidden]) .picture img");
    const rest = () => {
      for (const image of read.querySelectorAll("img[data-later]")) {
        image.src = image.dataset.later;
        image.removeAttribute("data-later");
      }
    };
    if (!large || large.complete) rest();
    else for (const end of ["load", "error"]) large.addEventListener(end, rest, { once: true });
  }

  // Updates what depends on the shown step: strip, buttons, pictures of the steps next to it, and tree.
  function settle(place) {
    const all = steps();
    const strip = story()?.querySelector(".strip");
    if (!strip) return;
    for (const link of strip.querySelectorAll("[data-step]")) {
      const is_here = Number(link.dataset.step) === place;
      if (is_here) link.setAttribute("aria-current", "step");
      else link.removeAttribute("aria-current");
      if (is_here) strip.scrollLeft = link.offsetLeft - strip.offsetLeft - (strip.clientWidth - link.offsetWidth) / 2;
    }
    for (const button of story().querySelectorAll("[data-walk]")) {
      const to = place + Number(button.dataset.walk);
      button.disabled = to < 1 || to > all.length;
    }
    const shown = all[place - 1]?.querySelector("img");
    const fetch_neighbours = () => {
      for (const near of [place + 1, place - 1]) {
        const image = all[near - 1]?.querySelector("img");
        if (image) image.loading = "eager";
      }
    };
    if (shown) shown.loading = "eager";
    if (!shown || shown.complete) fetch_neighbours();
    else shown.addEventListener("load", fetch_neighbours, { once: true });
    const outline = all[place - 1]?.querySelector(".outline");
    const frame = all[place - 1]?.querySelector(".shot");
    if (outline && frame && frame.scrollHeight > frame.clientHeight) {
      frame.scrollTop = outline.offsetTop - frame.clientHeight / 2;
    }
    if (story().querySelector(".tree")?.open) show_tree();
  }

  // Verdicts ---------------------------------------------------------------------------------------------

  function fold(is_folded) {
    const button = story()?.querySelector(".fold");
    if (!button) return;
    button.setAttribute("aria-expanded", String(!is_folded));
    story().classList.toggle("verdicts-folded", is_folded);
  }

  function toggle_fold() {
    const is_folded = !story().classList.contains("verdicts-folded");
    localStorage.setItem("arb-verdicts", is_folded ? "folded" : "open");
    fold(is_folded);
  }

  // The tree: loaded when it is opened, searched in the browser ---------------------------------------------

  let found = []; // ranges of the search's matches
  let at = -1;

  async function show_tree() {
    const panel = story().querySelector(".tree");
    const text = panel.querySelector(".tree-text");
    const step = steps().find((one) => !one.hidden);
    const form = document.getElementById("tree-pruned").checked ? "pruned" : "full";
    const address = `${panel.dataset.address}&num=${step.dataset.num}&form=${form}`;
    text.setAttribute("aria-busy", "true");
    if (!trees.has(address)) {
      try {
        const answer = await fetch(address);
        trees.set(address, answer.ok ? await answer.text() : "");
      } catch {
        text.textContent = "The tree could not be loaded. Close and open this to try again.";
        return;
      }
    }
    if (step.hidden) return; // the reader has gone to another step meanwhile
    text.textContent = trees.get(address) || "No tree was recorded for this step.";
    text.removeAttribute("aria-busy");
    mark_element(text, step.dataset.bid);
    search_tree();
  }

  function range_in(text, start, end) {
    const range = new Range();
    range.setStart(text.firstChild, start);
    range.setEnd(text.firstChild, end);
    return range;
  }

  function paint(name, ranges) {
    if (!CSS.highlights) return; // an older browser shows the tree without marks
    if (ranges.length) CSS.highlights.set(name, new Highlight(...ranges));
    else CSS.highlights.delete(name);
  }

  function into_view(text, range) {
    const place = range.getBoundingClientRect();
    const frame = text.getBoundingClientRect();
    text.scrollTop += place.top - frame.top - frame.height / 2;
    text.scrollLeft = Math.max(0, place.left - frame.left + text.scrollLeft - frame.width / 2);
  }

  function mark_element(text, bid) {
    paint("arb-acted", []);
    if (!bid) return;
    const escaped = bid.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const line = new RegExp(`^[ \\t]*(\\[${escaped}\\] .*)$`, "m").exec(text.textContent);
    if (!line) return;
    const range = range_in(text, line.index + line[0].length - line[1].length, line.index + line[0].length);
    paint("arb-acted", [range]);
    into_view(text, range);
  }

  function search_tree() {
    const text = story().querySelector(".tree-text");
    const wanted = document.getElementById("tree-search").value.trim();
    found = [];
    at = -1;
    if (wanted && text.firstChild) {
      const pattern = new RegExp(wanted.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi");
      for (const match of text.textContent.matchAll(pattern)) {
        found.push(range_in(text, match.index, match.index + match[0].length));
        if (found.length === 2000) break;
      }
    }
    paint("arb-found", found);
    paint("arb-found-here", []);
    tell_matches(wanted);
    if (found.length) to_match(1);
  }

  function tell_matches(wanted) {
    const count = story().querySelector(".tree-count");
    const many = found.length === 2000 ? "2,000 or more" : String(found.length);
    count.textContent = !wanted ? "" : found.length ? `${at + 1} of ${many}` : "no match";
  }

  function to_match(by) {
    if (!found.length) return;
    at = (at + by + found.length) % found.length;
    paint("arb-found-here", [found[at]]);
    into_view(story().querySelector(".tree-text"), found[at]);
    tell_matches(true);
  }

  // Judges' reasoning: loaded when it is opened -------------------------------------------------------------

  async function show_reasoning(panel) {
    const text = panel.querySelector(".why");
    if (!text || text.childElementCount) return;
    text.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(panel.dataset.address);
      text.innerHTML = answer.ok ? await answer.text() : "<p>The reasoning could not be loaded.</p>";
    } catch {
      text.textContent = "The reasoning could not be loaded. Close and open this to try again.";
    }
    text.removeAttribute("aria-busy");
  }

  // Events -------------------------------------------------------------------------------------------------

  const on = (type, selector, act) =>
    document.addEventListener(type, (event) => {
      const element = event.target.closest?.(selector);
      if (element && here()?.contains(element)) act(element, event);
    }, type === "toggle");

  const is_plain = (event) => event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);

  on("click", "a[data-step]", (link, event) => {
    if (!is_plain(event)) return;
    event.preventDefault();
    walk_to(Number(link.dataset.step));
  });
  on("click", "[data-walk]", (button) => walk_to(Number(story().dataset.place) + Number(button.dataset.walk)));
  on("click", "[data-match]", (button) => to_match(Number(button.dataset.match)));
  on("click", ".fold", toggle_fold);
  on("click", ".goal-more", (button) => {
    const is_open = story().classList.toggle("goal-open");
    button.setAttribute("aria-expanded", String(is_open));
    story().querySelector(".goal-text").tabIndex = is_open ? 0 : -1; // a long goal scrolls, so it needs the focus
    button.textContent = is_open ? "Show less" : "Show all of the goal";
  });
  on("click", ".filters-more", (button) => {
    button.setAttribute("aria-expanded", String(button.form.classList.toggle("filters-open")));
  });
  on("input", "#tree-search", search_tree);
  on("change", "#tree-pruned", show_tree);
  on("toggle", ".tree", (panel) => panel.open && show_tree());
  on("toggle", ".judge", (panel) => panel.open && show_reasoning(panel));
  on("keydown", "#tree-search", (_, event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    to_match(event.shiftKey ? -1 : 1);
  });

  const keys = {
    ArrowLeft: () => walk_to(Number(story().dataset.place) - 1),
    ArrowRight: () => walk_to(Number(story().dataset.place) + 1),
    k: () => walk_to(Number(story().dataset.place) - 1),
    j: () => walk_to(Number(story().dataset.place) + 1),
    Home: () => walk_to(1),
    End: () => walk_to(steps().length),
    n: () => story().querySelector("a[rel=next]")?.click(),
    p: () => story().querySelector("a[rel=prev]")?.click(),
    v: toggle_fold,
    t: () => {
      const panel = story().querySelector(".tree");
      if (!panel) return;
      panel.open = !panel.open;
      if (panel.open) document.getElementById("tree-search").focus();
    },
    Escape: () => story().querySelector("[data-back]")?.click(),
  };
  document.addEventListener("keydown", (event) => {
    if (!story()?.querySelector(".step") || event.defaultPrevented) return;
    if (event.metaKey || event.ctrlKey || event.altKey || event.shiftKey) return;
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (typing) {
      if (event.key === "Escape") typing.blur();
      return;
    }
    if (event.target.closest("pre") && event.key.startsWith("Arrow")) return; // arrow keys scroll a wide text
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  opened();
})();
