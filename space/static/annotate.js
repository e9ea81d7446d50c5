// Annotating by keyboard. Every change is stored in this browser immediately and sent to REST a moment later.
// Changes that the server has not acknowledged are sent again, even after a reload or a restart.
(() => {
  const ADDRESS = arbPath("/api/annotate/answers");
  const IDLE_MS = 60_000; // after a minute without input the annotator is considered away
  const KEPT = "arb-draft:"; // prefix of keys in localStorage; the item's token follows
  const is_bare = (event) => !(event.metaKey || event.ctrlKey || event.altKey || event.shiftKey);
  const form = document.querySelector("form[data-annotate]");

  // Returns the server's response and its status, or status 0 without a response.
  async function put(body) {
    try {
      const answer = await fetch(ADDRESS, {
        method: "PUT", credentials: "same-origin", keepalive: true,
        headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
      });
      return { status: answer.status, found: await answer.json().catch(() => ({})) };
    } catch {
      return { status: 0, found: {} };
    }
  }

  function kept(token) {
    try { return JSON.parse(localStorage.getItem(KEPT + token)); } catch { return null; }
  }

  // Sends drafts of other items that were not sent before the browser was closed or the server stopped.
  async function send_others() {
    let keys = [];
    try { keys = Object.keys(localStorage); } catch { /* without storage nothing is kept */ }
    for (const key of keys) {
      const token = key.slice(KEPT.length);
      if (!key.startsWith(KEPT) || token === form?.dataset.annotate) continue;
      const body = kept(token);
      if (body && (await put(body)).status === 200) localStorage.removeItem(key);
    }
  }

  const next_link = document.querySelector("a[data-annotate-next]");
  const undo_link = document.querySelector("a[data-annotate-undo]");
  if (!form) {
    document.addEventListener("keydown", (event) => {
      if (!is_bare(event) || event.target !== document.body) return;
      if (event.key === "Enter") next_link?.click();
      if (event.key === "u") undo_link?.click();
    });
    send_others();
    return;
  }

  const questions = [...form.querySelectorAll(".question")];
  const told = form.querySelector(".saved-told");
  const comment = form.elements.comment;
  const flag = form.elements.flag;
  const story = document.querySelector(".story");
  const is_closed = form.hasAttribute("data-closed");
  const token = form.dataset.annotate;
  const number = (text) => (text ? Number(text) : null);
  let client = [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  let seen = Number(form.dataset.seen);
  let was_done = form.dataset.done === "true";
  let seconds = Number(form.dataset.seconds);
  let step = number(form.dataset.step); // the number of the deciding step
  let active_at = performance.now();
  let changed = false; // since the last response of the server
  let is_kept = false; // whether the draft is stored in this browser
  let leaving = null; // "done" or "skipped": go to the next item once this one is saved
  let sending = null; // the running request
  let soon = 0;
  let stopped = false; // nothing more is sent, for example because another window has saved
  let current = -1;
  let confirmed = ""; // contradictions about which the annotator was already asked
  const changes = []; // changes that `u` undoes: [question, or null for the deciding step; previous value; step]
  const asked_steps = JSON.parse(form.dataset.askedSteps); // the steps that the suite asks about, as texts
  let of_steps = JSON.parse(form.dataset.steps); // answers about steps: {step: {question: value}}
  const step_questions = questions.filter((question) => question.hasAttribute("data-of-step"));

  // Time while the page is visible -------------------------------------------------------------------------

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
  const run_questions = questions.filter((question) => !step_questions.includes(question));
  const missing = () => run_questions.filter((question) => answer_of(question) === null);
  const is_answered = (one) => step_questions.every((question) => of_steps[one]?.[question.dataset.question]);
  const missing_steps = () => asked_steps.filter((one) => !is_answered(one));
  const answers_before = new Map(run_questions.map((question) => [question, answer_of(question)]));

  // Returns the answers about the run, and those about its named parts: {part: {question: value}}.
  function answers_now() {
    const [answers, parts] = [{}, {}];
    for (const question of run_questions) {
      const part = question.dataset.part;
      (part === undefined ? answers : (parts[part] ??= {}))[question.dataset.question] = answer_of(question);
    }
    return { answers, ...(Object.keys(parts).length ? { parts } : {}) };
  }

  function draft() {
    tick();
    const is_done = leaving === "done" || (leaving === null && was_done && !missing().length && !missing_steps().length);
    return {
      item: token, ...answers_now(), ...(asked_steps.length ? { steps: of_steps } : {}), comment: comment.value, flag: flag.value, step, seconds, is_done,
      is_skipped: leaving === "skipped", client, seen,
    };
  }

  function keep() {
    try { localStorage.setItem(KEPT + token, JSON.stringify(draft())); is_kept = true; } catch { is_kept = false; }
  }

  function forget() {
    try { localStorage.removeItem(KEPT + token); } catch { /* nothing was kept */ }
  }

  function say(text, is_bad = false) {
    told.textContent = text;
    told.classList.toggle("is-bad", is_bad);
  }

  function change(wait) {
    if (is_closed || stopped) return;
    leaving = null;
    changed = true;
    keep();
    say("Not saved yet");
    clearTimeout(soon);
    soon = setTimeout(send, wait);
  }

  // Sends one request at a time, so that they arrive in order, and repeats it until the server accepts it.
  async function send() {
    if (is_closed || stopped) return;
    clearTimeout(soon);
    while (sending) await sending; // a loop, as several calls may wait for the same request
    if (stopped) return;
    changed = false;
    const [body, saves_to_leave] = [draft(), leaving]; // an earlier request does not mark it as done
    keep();
    say("Saving …");
    sending = put(body);
    const { status, found } = await sending;
    sending = null;
    if (status === 200) {
      seen = found.saved;
      was_done = body.is_done;
      if (changed) return;
      forget();
      say(found.lasts ? "Saved" : "Saved, and waiting to be stored permanently");
      if (saves_to_leave) window.location.assign(arbPath(found.next === token ? "/annotate" : found.next_address ?? "/annotate"));
      return;
    }
    stopped = status >= 400 && status < 500 && status !== 429;
    const why = found.detail ?? (status ? `the server responded with status ${status}` : "the server does not respond");
    say(stopped ? `Not saved, but kept in this browser: ${why}` : `Not saved yet: ${why}. Trying again …`, true);
    if (stopped) return;
    changed = true;
    soon = setTimeout(send, 2_000);
  }

  function leave(how) {
    leaving = how;
    return send();
  }

  // The draft in this browser is newer than the server's, unless another page has saved in the meantime.
  function restore() {
    const before = kept(token);
    if (!before || is_closed) return;
    if (before.seen === seen || before.client === form.dataset.client) { use(before); return; }
    const notice = form.querySelector(".unsent");
    notice.hidden = false;
    notice.querySelector("button").addEventListener("click", () => { notice.hidden = true; use(before); });
  }

  function use(before) {
    for (const question of run_questions) {
      const part = question.dataset.part;
      const answers = part === undefined ? before.answers : (before.parts?.[part] ?? {});
      for (const input of question.querySelectorAll("input")) input.checked = input.value === answers[question.dataset.question];
    }
    of_steps = before.steps ?? {};
    show_asked();
    comment.value = before.comment;
    flag.value = before.flag;
    form.querySelector(".flagging").open ||= Boolean(flag.value);
    step = before.step;
    seconds = Math.max(seconds, before.seconds);
    client = before.client;
    show_step();
    change(0);
    if (before.is_done || before.is_skipped) leave(before.is_done ? "done" : "skipped");
  }

  // Finishing, skipping, undoing ---------------------------------------------------------------------------

  // Returns the pairs of answers that contradict each other, as sentences.
  function contradictions() {
    const words = (name, value) => {
      const question = questions.find((each) => each.dataset.question === name);
      const choice = question.querySelector("input:checked");
      return choice?.value === value ? `“${question.dataset.title}: ${choice.closest("label").querySelector("span").textContent}”` : null;
    };
    return JSON.parse(form.dataset.contradictions)
      .map((pair) => pair.map(([name, value]) => words(name, value)))
      .filter((pair) => pair.every(Boolean))
      .map((pair) => pair.join(" and "));
  }

  function finish() {
    if (is_closed || stopped) return;
    const left = missing();
    const left_steps = missing_steps();
    if (left_steps.length) {
      show_story_step(left_steps[0]);
      say(`Answer step ${left_steps[0]} first`, true);
      return;
    }
    for (const question of run_questions) question.classList.toggle("is-missing", left.includes(question));
    if (left.length) {
      go_to(questions.indexOf(left[0]));
      say(`Answer this first: ${left[0].querySelector("legend").textContent}`, true);
      return;
    }
    const found = contradictions();
    const asked = form.querySelector(".contradiction");
    asked.hidden = !found.length || confirmed === found.join();
    if (!asked.hidden) {
      asked.textContent = `${found.join("; ")} contradict each other. Change one, or press Enter (or the button) again to keep both.`;
      confirmed = found.join();
      return;
    }
    leave("done");
  }

  function take_back() {
    if (is_closed || stopped) return;
    if (!changes.length) {
      if (form.dataset.undo) window.location.assign(form.dataset.undo);
      else say("There is nothing to undo");
      return;
    }
    const [question, before, of_step] = changes.pop();
    if (of_step) {
      set_step_answer(of_step, question.dataset.question, before);
      show_story_step(of_step);
      go_to(questions.indexOf(question));
    } else if (question) {
      for (const input of question.querySelectorAll("input")) input.checked = input.value === before;
      answers_before.set(question, before);
      confirmed = "";
      go_to(questions.indexOf(question));
    } else {
      step = before;
      show_step();
    }
    change(150);
  }

  // The deciding step --------------------------------------------------------------------------------------

  const sections = () => [...story.querySelectorAll(".step")];
  const place_of = (num) => sections().find((each) => Number(each.dataset.num) === num)?.dataset.place;

  function show_step() {
    const button = form.querySelector("[data-decide]");
    if (!button) return;
    const place = story.dataset.place;
    const decided = step === null ? null : place_of(step);
    button.setAttribute("aria-pressed", String(decided === place));
    button.querySelector("span").textContent = decided === place ? `Step ${place} is the deciding step` : `Mark step ${place} as the deciding step`;
    form.querySelector(".decided").textContent = decided && decided !== place ? `Deciding step: ${decided}` : "";
    for (const link of story.querySelectorAll(".strip [data-step]")) link.classList.toggle("is-deciding", link.dataset.step === decided);
  }

  function decide() {
    if (is_closed || stopped || !sections().length) return;
    const shown = number(story.querySelector(`.step[data-place="${story.dataset.place}"]`).dataset.num);
    changes.push([null, step]);
    step = step === shown ? null : shown;
    show_step();
    change(150);
  }
  new MutationObserver(show_step).observe(story, { attributes: true, attributeFilter: ["data-place"] });

  // Answers about steps ------------------------------------------------------------------------------------

  const is_asked = () => asked_steps.includes(story.dataset.place);

  function set_step_answer(one, name, value) {
    of_steps = { ...of_steps, [one]: { ...of_steps[one], [name]: value } };
    show_asked();
  }

  // Shows the answers about the step that is shown, and how many steps are answered.
  function show_asked() {
    if (!step_questions.length) return;
    const place = story.dataset.place;
    for (const question of step_questions) {
      question.hidden = !is_asked();
      for (const input of question.querySelectorAll("input")) {
        input.checked = is_asked() && input.value === of_steps[place]?.[question.dataset.question];
      }
    }
    form.querySelector(".steps-told").textContent = `${asked_steps.filter(is_answered).length} of ${asked_steps.length} steps`;
    form.querySelector(".step-asked").textContent = is_asked() ? `Step ${place}` : `Step ${place} is not asked`;
    for (const link of story.querySelectorAll(".strip [data-step]")) {
      link.classList.toggle("is-answered", asked_steps.includes(link.dataset.step) && is_answered(link.dataset.step));
    }
  }

  function show_story_step(one) {
    const link = story.querySelector(`.strip [data-step="${CSS.escape(one)}"]`);
    if (!link) say(`The dataset has no step ${one}; tell the maintainers`, true);
    else if (one !== story.dataset.place) link.click();
  }

  // Goes to the next question about this step, else to the next unanswered step, else to the run's questions.
  function go_on() {
    const following = step_questions[step_questions.indexOf(questions[current]) + 1];
    if (following) return go_to(questions.indexOf(following));
    const at = asked_steps.indexOf(story.dataset.place);
    const next = [...asked_steps.slice(at + 1), ...asked_steps.slice(0, at)].find((one) => !is_answered(one));
    if (next) return show_story_step(next);
    const first = missing()[0] ?? run_questions[0];
    if (first) go_to(questions.indexOf(first));
  }

  new MutationObserver(() => {
    show_asked();
    if (step_questions.length && is_asked()) go_to(0);
  }).observe(story, { attributes: true, attributeFilter: ["data-place"] });

  // Questions ----------------------------------------------------------------------------------------------

  function mark_current() {
    const name = questions[current].dataset.question;
    for (const question of questions) question.classList.toggle("is-current", question === questions[current]);
    for (const guide of form.querySelectorAll(".guide[data-for]")) guide.classList.toggle("is-current", guide.dataset.for === name);
  }

  function go_to(place) {
    if (!questions.length) return;
    current = Math.min(Math.max(0, place), questions.length - 1);
    mark_current();
    questions[current].focus({ preventScroll: true });
    const frame = form.getBoundingClientRect();
    const here = questions[current].getBoundingClientRect();
    if (here.bottom > frame.bottom) form.scrollTop += here.bottom - frame.bottom;
    if (here.top < frame.top) form.scrollTop += here.top - frame.top;
  }

  const choice_of = (key) => questions[current]?.querySelector(`input[data-key="${CSS.escape(key)}"]`);

  function answered(question) {
    const name = question.dataset.question;
    const place = story.dataset.place;
    const before = step_questions.includes(question) ? (of_steps[place]?.[name] ?? null) : answers_before.get(question);
    if (before === answer_of(question)) return;
    if (step_questions.includes(question)) {
      changes.push([question, before, place]);
      set_step_answer(place, name, answer_of(question));
    } else {
      changes.push([question, before]);
      answers_before.set(question, answer_of(question));
    }
    confirmed = "";
    question.classList.remove("is-missing");
    form.querySelector(".contradiction").hidden = true;
    change(150);
  }

  function choose(choice) {
    if (is_closed || stopped || questions[current].hidden) return;
    choice.checked = true;
    answered(questions[current]);
    if (step_questions.includes(questions[current])) go_on();
    else if (current < questions.length - 1) go_to(current + 1);
  }

  function open_flag() {
    form.querySelector(".flagging").open = true;
    flag.focus();
  }

  form.addEventListener("change", (event) => {
    const question = event.target.closest(".question");
    if (question) answered(question);
  });
  form.addEventListener("focusin", (event) => {
    const place = questions.indexOf(event.target.closest(".question"));
    if (place >= 0 && place !== current) {
      current = place;
      mark_current();
    }
  });
  form.addEventListener("pointerup", () => setTimeout(() => { // keys then act on the question, not on its button
    const radio = document.activeElement;
    if (radio?.matches(".question input")) radio.closest(".question").focus({ preventScroll: true });
  }));
  for (const text of [comment, flag]) text.addEventListener("input", () => change(700));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    finish();
  });
  form.querySelector("[data-skip]").addEventListener("click", () => leave("skipped"));
  form.querySelector("[data-take-back]").addEventListener("click", take_back);
  form.querySelector("[data-decide]")?.addEventListener("click", decide);
  function toggle_guides() {
    const is_shown = form.classList.toggle("shows-guides");
    form.querySelector(".guides-all").setAttribute("aria-pressed", String(is_shown));
  }
  form.querySelector(".guides-all").addEventListener("click", toggle_guides);

  const keys = {
    ArrowUp: () => go_to(current - 1),
    ArrowDown: () => go_to(current + 1),
    c: () => comment.focus(),
    d: decide,
    f: open_flag,
    g: toggle_guides,
    s: () => leave("skipped"),
    u: take_back,
    Enter: finish,
  };
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented) return;
    if (event.target === comment || event.target === flag) {
      const is_end = event.key === "Enter" && (event.ctrlKey || event.metaKey);
      if (is_end) { event.preventDefault(); finish(); }
      else if (event.key === "Escape" || (event.key === "Enter" && event.target === flag)) {
        event.preventDefault(); event.stopImmediatePropagation(); go_to(current);
      }
      return;
    }
    if (!is_bare(event) || event.target.closest("input:not([type=radio]), textarea, select")) return;
    if (event.target.closest("pre") && event.key.startsWith("Arrow")) return; // arrow keys scroll the tree
    if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
    // If the Tab key led to a choice, arrow keys work as the browser defines.
    if (event.target.matches("input[type=radio]") && event.key.startsWith("Arrow")) return;
    const choice = choice_of(event.key);
    const act = choice ? () => choose(choice) : keys[event.key];
    if (!act || event.repeat && choice) return;
    event.preventDefault();
    act();
  }, true);
  window.addEventListener("beforeunload", (event) => {
    if (!changed || is_closed || stopped) return;
    send();
    if (!is_kept) event.preventDefault(); // without storage the browser asks whether to leave
  });

  show_asked();
  if (missing_steps().length) show_story_step(missing_steps()[0]);
  go_to(missing_steps().length ? 0 : Math.max(0, questions.indexOf(missing()[0])));
  show_step();
  restore();
  send_others();
})();
