// Annotating by keyboard. Every change is sent to REST a moment later; what is sent and not yet kept is said.
(() => {
  const form = document.querySelector("form[data-annotate]");
  const next_link = document.querySelector("a[data-annotate-next]");
  const is_bare = (event) => !(event.metaKey || event.ctrlKey || event.altKey || event.shiftKey);
  if (next_link) {
    document.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && is_bare(event) && event.target === document.body) next_link.click();
    });
  }
  if (!form) return;

  const ADDRESS = "/api/annotate/answers";
  const IDLE_MS = 60_000; // whoever does nothing for a minute has left
  const questions = [...form.querySelectorAll(".question")];
  const told = form.querySelector(".saved-told");
  const comment = form.elements.comment;
  const is_closed = form.hasAttribute("data-closed");
  let seen = Number(form.dataset.seen);
  let was_done = form.dataset.done === "true";
  let seconds = Number(form.dataset.seconds);
  let active_at = performance.now();
  let changed = false; // since the last answer of the server
  let sending = null; // the request under way
  let soon = 0;
  let stopped = false; // another window has saved: nothing is sent any more
  let current = -1;

  // Time: while the page is looked at ----------------------------------------------------------------------

  function tick() {
    const now = performance.now();
    if (!document.hidden && now - active_at < IDLE_MS) seconds += (now - active_at) / 1000;
    active_at = now;
  }
  for (const kind of ["keydown", "pointermove", "wheel"]) document.addEventListener(kind, tick, { passive: true });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { active_at = Math.max(active_at, performance.now() - IDLE_MS); if (changed) send(); }
    else active_at = performance.now();
  });

  // Saving -------------------------------------------------------------------------------------------------

  const answer_of = (question) => question.querySelector("input:checked")?.value ?? null;
  const missing = () => questions.filter((question) => answer_of(question) === null);

  function draft(is_done) {
    tick();
    const answers = Object.fromEntries(questions.map((question) => [question.dataset.question, answer_of(question)]));
    return { item: form.dataset.annotate, answers, comment: comment.value, seconds, is_done, seen };
  }

  function say(text, is_bad = false) {
    told.textContent = text;
    told.classList.toggle("is-bad", is_bad);
  }

  function change(wait) {
    if (is_closed || stopped) return;
    changed = true;
    say("Not saved yet");
    clearTimeout(soon);
    soon = setTimeout(() => send(), wait);
  }

  // One request at a time, so that they come in order; gives the server's answer, or null.
  async function send(is_done = was_done && !missing().length) {
    if (is_closed || stopped) return null;
    clearTimeout(soon);
    while (sending) await sending; // two that wait for the same request go one after the other
    changed = false;
    say("Saving …");
    sending = put(draft(is_done));
    const found = await sending;
    sending = null;
    if (found) {
      seen = found.saved;
      was_done = is_done;
      if (!changed) say(found.lasts ? "Saved" : "Saved; it waits to be stored permanently");
    } else if (!stopped) {
      changed = true;
      soon = setTimeout(() => send(is_done), 2_000);
    }
    return found;
  }

  async function put(body) {
    try {
      const answer = await fetch(ADDRESS, {
        method: "PUT", credentials: "same-origin", keepalive: true,
        headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
      });
      if (answer.ok) return await answer.json();
      const problem = (await answer.json().catch(() => ({}))).detail ?? `the server answered ${answer.status}`;
      stopped = answer.status < 500 && answer.status !== 429;
      say(`Not saved: ${problem}`, true);
    } catch {
      say("Not saved: the server does not answer. Trying again …", true);
    }
    return null;
  }

  async function finish() {
    if (is_closed || stopped) return;
    const left = missing();
    for (const question of questions) question.classList.toggle("is-missing", left.includes(question));
    if (left.length) {
      go_to(questions.indexOf(left[0]));
      say(`Answer this first: ${left[0].querySelector("legend").textContent}`, true);
      return;
    }
    const found = await send(true);
    if (found) window.location.assign(found.next_address ?? "/annotate");
  }

  // Questions ----------------------------------------------------------------------------------------------

  function mark_current() {
    const name = questions[current].dataset.question;
    for (const question of questions) question.classList.toggle("is-current", question === questions[current]);
    for (const guide of form.querySelectorAll(".guide[data-for]")) guide.classList.toggle("is-current", guide.dataset.for === name);
  }

  function go_to(place) {
    current = Math.min(Math.max(0, place), questions.length - 1);
    mark_current();
    questions[current].focus({ preventScroll: true });
    const frame = form.getBoundingClientRect();
    const here = questions[current].getBoundingClientRect();
    if (here.bottom > frame.bottom) form.scrollTop += here.bottom - frame.bottom;
    if (here.top < frame.top) form.scrollTop += here.top - frame.top;
  }

  const choice_of = (key) => questions[current].querySelector(`input[data-key="${CSS.escape(key)}"]`);

  function choose(choice) {
    if (is_closed || stopped) return;
    choice.checked = true;
    questions[current].classList.remove("is-missing");
    change(150);
    if (current < questions.length - 1) go_to(current + 1);
  }

  form.addEventListener("change", (event) => {
    const question = event.target.closest(".question");
    if (!question) return;
    question.classList.remove("is-missing");
    change(150);
  });
  form.addEventListener("focusin", (event) => {
    const place = questions.indexOf(event.target.closest(".question"));
    if (place >= 0 && place !== current) {
      current = place;
      mark_current();
    }
  });
  form.addEventListener("pointerup", () => setTimeout(() => { // keys go on where the pointer was
    const radio = document.activeElement;
    if (radio?.matches(".question input")) radio.closest(".question").focus({ preventScroll: true });
  }));
  comment.addEventListener("input", () => change(700));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    finish();
  });
  function toggle_guides() {
    const is_shown = form.classList.toggle("shows-guides");
    form.querySelector(".guides-all").setAttribute("aria-pressed", String(is_shown));
  }
  form.querySelector(".guides-all").addEventListener("click", toggle_guides);

  const keys = {
    ArrowUp: () => go_to(current - 1),
    ArrowDown: () => go_to(current + 1),
    c: () => comment.focus(),
    g: toggle_guides,
    Enter: finish,
  };
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented) return;
    if (event.target === comment) {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); finish(); }
      if (event.key === "Escape") { event.preventDefault(); event.stopImmediatePropagation(); go_to(current); }
      return;
    }
    if (!is_bare(event) || event.target.closest("input:not([type=radio]), textarea, select")) return;
    if (event.target.closest("pre") && event.key.startsWith("Arrow")) return; // a tree is scrolled with them
    if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
    // Who came to a choice by the Tab key goes on with the browser's own keys.
    if (event.target.matches("input[type=radio]") && event.key.startsWith("Arrow")) return;
    const choice = choice_of(event.key);
    const act = choice ? () => choose(choice) : keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }, true);
  window.addEventListener("beforeunload", (event) => { if (changed && !is_closed && !stopped) { send(); event.preventDefault(); } });

  go_to(Math.max(0, questions.indexOf(missing()[0])));
})();
