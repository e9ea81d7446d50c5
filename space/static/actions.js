// Sends forms with data-action to REST as JSON, reloads the page, and shows the result on it.
(() => {
  const SAID = "arb-action-result";

  function say(form, text) {
    const place = form.querySelector(".action-result");
    place.hidden = !text;
    place.textContent = text;
  }

  async function send(form) {
    const body = Object.fromEntries([...new FormData(form)].filter(([name]) => name !== "address"));
    const address = new FormData(form).get("address"); // completes the URL, for example with an account's name
    const action = form.getAttribute("action") + (address === null ? "" : encodeURIComponent(address.trim()));
    const answer = await fetch(action, {
      method: "POST", credentials: "same-origin", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    });
    const found = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(typeof found.detail === "string" ? found.detail : `the server responded with status ${answer.status}`);
    return found;
  }

  async function finished(address) { // polls a background job until it has ended
    for (;;) {
      const found = await (await fetch(address, { credentials: "same-origin", cache: "no-store" })).json();
      if (found.state !== "running") return found;
      await new Promise((wait) => setTimeout(wait, 700));
    }
  }

  // The buttons were disabled so that the browser did not send the form itself, to a route that returns JSON.
  for (const button of document.querySelectorAll("form[data-action] button[type=submit]")) button.disabled = false;

  document.addEventListener("change", (event) => { // offers only the answers to the chosen question
    const answers = event.target.form?.querySelector(`select[data-of="${event.target.name}"]`);
    if (!answers) return;
    for (const group of answers.querySelectorAll("optgroup")) group.disabled = group.dataset.for !== event.target.value;
    answers.value = "";
  });

  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("form[data-action]");
    if (!form) return;
    event.preventDefault();
    if (form.dataset.sure && !window.confirm(form.dataset.sure)) return;
    const button = form.querySelector("button[type=submit]");
    button.disabled = true;
    form.setAttribute("aria-busy", "true");
    say(form, "");
    try {
      let found = await send(form);
      if (found.state === "running") found = await finished(form.getAttribute("action"));
      if (found.state === "failed") throw new Error(found.message);
      sessionStorage.setItem(SAID, found.lasts === false ? "Done. It is waiting to be stored permanently." : "Done.");
      if (form.dataset.then) window.location.assign(form.dataset.then); // the page that lists the result
      else window.location.reload();
    } catch (problem) {
      say(form, `Nothing was done: ${problem.message}.`.replace(/\.\.$/, "."));
      button.disabled = false;
      form.removeAttribute("aria-busy");
    }
  });

  try {
    const said = sessionStorage.getItem(SAID);
    const main = document.querySelector("main.plain-page");
    if (said && main) {
      sessionStorage.removeItem(SAID);
      const note = document.createElement("p");
      note.className = "notice good";
      note.setAttribute("role", "status");
      note.textContent = said;
      main.prepend(note);
    }
  } catch { /* without storage nothing is said */ }
})();
