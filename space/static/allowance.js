// What is left to an account: asked of the server for whoever is signed in, and on one's own machine for the
// name in the form. Pages are the same for every reader, so they cannot say it themselves.
(() => {
  const isSignedIn = () => document.cookie.split("; ").some((cookie) => cookie.startsWith("arb-signed-in="));
  let asked = null;
  let timer = 0;

  async function ask() {
    const places = document.querySelectorAll("[data-allowance]");
    if (!places.length) return;
    const name = document.querySelector("#account input, #account textarea")?.value.trim() ?? "";
    const address = isSignedIn() ? "/api/allowance" : name ? `/api/allowance?account=${encodeURIComponent(name)}` : null;
    asked = address;
    let told = "";
    if (address) {
      try {
        const answer = await fetch(address, { credentials: "same-origin", cache: "no-store" });
        if (answer.ok) told = (await answer.json()).told;
      } catch { /* then the rules alone stand there */ }
    }
    if (asked === address) for (const place of document.querySelectorAll("[data-allowance]")) place.textContent = told;
  }

  function soon() {
    clearTimeout(timer);
    timer = setTimeout(ask, 400);
  }

  document.addEventListener("arb:opened", () => {
    ask();
    const outcome = document.querySelector("#outcome"); // a receipt there: less is left
    if (outcome) new MutationObserver(soon).observe(outcome, { childList: true, subtree: true });
  });
  document.addEventListener("input", (event) => {
    if (event.target.closest?.("#account")) soon();
  });
  ask();
})();
