// Supports the form that Gradio draws: starts it, keeps the split in the URL, checks a file's size before the
// upload, shows the outcome next to the file, and shows the account's remaining quota.
(() => {
  for (const place of document.querySelectorAll("[data-origin]")) place.textContent = window.location.origin + (place.dataset.origin ? "" : arbPath(""));
  const form = document.getElementById("submit-form");
  if (!form) return;
  const splitInAddress = () => (new URLSearchParams(window.location.search).get("split") === "dev" ? "dev" : "test");

  async function start() {
    try {
      const answer = await fetch("/config?page=submit");
      if (!answer.ok) throw new Error(answer.status);
      const config = await answer.json();
      config.root = window.location.origin;
      config.page[arbPath("/submit").slice(1)] = config.page.submit; // Gradio looks for the page by its path
      window.gradio_config = config;
      window.__gradio_mode__ = "app";
      await import("/gradio.js");
    } catch {
      const notice = form.querySelector(".form-loading");
      notice.textContent = "The form could not be loaded. Reload the page, or use the commands below.";
      notice.classList.add("notice", "bad");
    }
  }

  // Gradio's own <main> is inside that of the page: readers of landmarks should find only one.
  new MutationObserver((_, watch) => {
    const inner = form.querySelector("main");
    if (!inner) return;
    inner.setAttribute("role", "none");
    watch.disconnect();
  }).observe(form, { childList: true, subtree: true });

  // Choosing a split adds a step to the browser's history, so back undoes it.
  form.addEventListener("change", (event) => {
    if (!event.target.matches("#split input")) return;
    const address = new URL(window.location);
    if (event.target.value === "dev") address.searchParams.set("split", "dev");
    else address.searchParams.delete("split");
    if (address.href !== window.location.href) window.history.pushState(null, "", address);
  });
  window.addEventListener("popstate", () => form.querySelector(`#split input[value="${splitInAddress()}"]`)?.click());

  // Refuses a file over the limit before it is uploaded.
  function tooLarge(files) {
    const file = files?.[0];
    const place = form.querySelector("[data-file-problem]");
    if (!file || !place) return false;
    place.replaceChildren();
    if (file.size <= Number(form.dataset.maxBytes)) return false;
    const notice = document.createElement("div");
    notice.className = "notice bad";
    notice.setAttribute("role", "alert");
    notice.textContent =
      `${file.name} has ${(file.size / 1e6).toFixed(1)} MB; the limit is ${form.dataset.limit}. ` +
      "Leave out long columns such as reasoning, or write Parquet.";
    place.append(notice);
    return true;
  }
  function refuse(event, files) {
    if (!tooLarge(files)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (event.target.matches("input")) event.target.value = "";
  }
  form.addEventListener("change", (event) => {
    if (event.target.matches("#prediction-file input[type=file]")) refuse(event, event.target.files);
  }, true);
  form.addEventListener("drop", (event) => {
    if (event.target.closest("#prediction-file")) refuse(event, event.dataTransfer?.files);
  }, true);

  // The account's remaining quota. It is requested here, since the page is the same for every reader.
  const isSignedIn = () => document.cookie.split("; ").some((cookie) => cookie.startsWith("arb-signed-in="));
  let latest = null;
  let timer = 0;

  async function askAllowance() {
    const name = form.querySelector("#account input, #account textarea")?.value.trim() ?? "";
    const address = isSignedIn() ? "/api/allowance" : name ? `/api/allowance?account=${encodeURIComponent(name)}` : null;
    latest = address;
    let text = "";
    if (address) {
      try {
        const answer = await fetch(arbPath(address), { credentials: "same-origin", cache: "no-store" });
        if (answer.ok) text = (await answer.json()).message;
      } catch { /* then only the rules are shown */ }
    }
    if (latest === address) for (const place of document.querySelectorAll("[data-allowance]")) place.textContent = text;
  }
  function askSoon() {
    clearTimeout(timer);
    timer = setTimeout(askAllowance, 400);
  }
  form.addEventListener("input", (event) => {
    if (event.target.closest("#account")) askSoon();
  });

  // Polls until a waiting receipt is stored permanently, as often as the server says.
  async function follow(notice) {
    for (let seconds = 2; notice.isConnected; ) {
      await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
      let found = null;
      try {
        const answer = await fetch(notice.dataset.waiting, { credentials: "same-origin", cache: "no-store" });
        if ([401, 403, 404].includes(answer.status)) return; // its page then explains it
        seconds = Math.max(1, Number(answer.headers.get("Retry-After")) || 2);
        if (answer.ok) found = await answer.json();
      } catch { /* the next answer says it */ }
      if (!found || found.status === "waiting") continue;
      notice.querySelector("[data-outcome]").textContent = found.status === "held" ? "Submitted and held." : "Submitted.";
      notice.querySelector("[data-sentence]").textContent = found.message;
      notice.querySelector("[data-status]").textContent = found.status;
      notice.classList.toggle("good", found.status === "accepted");
      return;
    }
  }

  // Gradio draws its parts one after the other, and shows the form once it can be used (SHOW_FORM of its page).
  // Once the last part is drawn, each outcome is scrolled into view and the quota is requested again.
  let isReady = false;
  document.addEventListener("submit-form-ready", () => { isReady = true; show(); });
  function show() {
    if (!isReady || PARTS.some((part) => !form.querySelector(part)) || form.classList.contains("is-ready")) return;
    form.querySelector(`#split input[value="${splitInAddress()}"]:not(:checked)`)?.click();
    form.classList.add("is-ready");
    fillInName();
  }
  // The name of the account, where the form asks for a name.
  async function fillInName() {
    const field = form.querySelector("#account :is(input, textarea)");
    if (!field || !isSignedIn()) return;
    const answer = await fetch(arbPath("/api/me"), { credentials: "same-origin", cache: "no-store" });
    const name = answer.ok ? (await answer.json()).name : null;
    if (!name || field.value) return;
    field.value = name;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
  const PARTS = ["#outcome", "#prediction-file button", "#inputs input", "#link input", "#test-labels input", "#submit-button"];
  const drawn = new MutationObserver(() => {
    if (PARTS.some((part) => !form.querySelector(part))) return;
    drawn.disconnect();
    show();
    const outcome = form.querySelector("#outcome");
    let shown = null;
    new MutationObserver(() => {
      const notice = outcome.querySelector(".notice");
      if (notice === shown) return;
      shown = notice;
      askSoon();
      notice?.scrollIntoView({ block: "nearest", behavior: "auto" });
      if (notice?.dataset.waiting) follow(notice);
    }).observe(outcome, { childList: true, subtree: true });
  });
  drawn.observe(form, { childList: true, subtree: true });
  start();
  askAllowance();
})();
