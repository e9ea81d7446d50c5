// Shows who is signed in. The page is the same for every reader, so this asks the server, but only if a session
// was begun in this browser. Elements with data-account="anonymous" or "signed-in" are shown accordingly.
(() => {
  const here = () => window.location.pathname + window.location.search;
  const isFramed = window.parent !== window;
  const link = document.querySelector(".sign-in-link");
  const form = document.querySelector("form.signed-in");
  const menu = document.querySelector(".account-menu");
  let account = null; // null until known; an object with name: null if nobody is signed in

  // Choices on a page change its URL. Signing in leads back to the URL at the time of the click.
  for (const event of ["pointerdown", "focusin", "click"]) document.addEventListener(event, (happened) => {
    const chosen = happened.target.closest?.("a[href^='/sign-in']");
    if (!chosen || document.querySelector("main.small-page")) return;
    chosen.href = `/sign-in?next=${encodeURIComponent(here())}`;
    if (isFramed) chosen.target = "_blank"; // the Hub's own page cannot be shown within the frame of a Space
  }, true);
  form?.addEventListener("submit", () => { form.elements.next.value = here(); });

  // A click elsewhere or Escape closes a menu.
  for (const each of document.querySelectorAll(".account-menu, .suite-menu")) {
    document.addEventListener("pointerdown", (event) => { if (each.open && !each.contains(event.target)) each.open = false; });
    each.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      each.open = false;
      each.querySelector("summary").focus();
    });
  }

  function show() {
    if (account === null) return;
    const isSignedIn = account.name !== null;
    if (link) link.hidden = isSignedIn;
    if (menu) {
      menu.hidden = !isSignedIn;
      menu.querySelector(".signed-in-name").textContent = account.name ?? "";
    }
    for (const place of document.querySelectorAll("[data-account]"))
      place.hidden = (place.dataset.account === "signed-in") !== isSignedIn;
    for (const place of document.querySelectorAll("[data-account-name]")) place.textContent = account.name ?? "";
    for (const place of document.querySelectorAll("[data-account-problem]")) {
      place.hidden = !account.problem;
      place.textContent = account.problem ?? "";
    }
    document.body.classList.toggle("is-maintainer", Boolean(account.is_maintainer));
    document.body.classList.toggle("is-signed-in", isSignedIn);
    document.body.classList.toggle("is-annotator", Boolean(account.is_annotator));
  }

  async function ask() {
    const nobody = { name: null, is_maintainer: false };
    try {
      const answer = await fetch(arbPath("/api/me"), { credentials: "same-origin", cache: "no-store" });
      account = answer.ok ? await answer.json() : nobody;
    } catch {
      account = nobody;
    }
    show();
  }

  if (document.cookie.split("; ").some((cookie) => cookie.startsWith("arb-signed-in="))) {
    document.body.classList.add("is-signed-in"); // so that no key or click is lost before the server responds
    ask();
  } else { account = { name: null, is_maintainer: false }; show(); }
})();
