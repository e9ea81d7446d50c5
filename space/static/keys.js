// Deciding and tagging by keyboard, on pages with articles [data-keys], whose forms have a list to choose from.
// An action reloads the page, which then continues at the same item.
(() => {
  const AT = `arb-keys-at:${window.location.pathname}${window.location.search}`;
  const items = [...document.querySelectorAll("article[data-keys]")];
  if (!items.length) return;
  let at = -1;

  const is_visible = (element) => element.getClientRects().length > 0;
  const forms_of = (item) => [...item.querySelectorAll("details.action-details")].filter((each) => is_visible(each) && each.querySelector("select"));

  function go_to(place) {
    at = Math.min(Math.max(0, place), items.length - 1);
    for (const item of items) item.classList.toggle("is-current", item === items[at]);
    items[at].tabIndex = -1;
    items[at].focus({ preventScroll: true });
    items[at].scrollIntoView({ block: "start" });
    sessionStorage.setItem(AT, String(at));
  }

  const opened = () => forms_of(items[at]).find((each) => each.open) ?? forms_of(items[at])[0];

  // Opens the next form of the item, which asks another question about the same trajectory.
  function next_form() {
    const forms = forms_of(items[at]);
    if (!forms.length) return;
    const place = forms.findIndex((each) => each.open);
    for (const each of forms) each.open = false;
    forms[(place + 1) % forms.length].open = true;
    forms[(place + 1) % forms.length].scrollIntoView({ block: "nearest" });
  }

  function choose(key) {
    const details = opened();
    const option = details?.querySelector(`option[data-key="${CSS.escape(key)}"]`);
    if (!option) return false;
    details.open = true;
    option.selected = true;
    option.parentElement.dispatchEvent(new Event("change", { bubbles: true }));
    (details.querySelector("input[required]:not([type=hidden]), textarea[required]") ?? details.querySelector("button[type=submit]")).focus();
    return true;
  }

  const keys = { j: () => go_to(at + 1), k: () => go_to(at - 1), q: next_form };
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || event.shiftKey) return;
    const typing = event.target.closest("input, textarea, select");
    if (typing) {
      if (event.key === "Escape" && at >= 0) items[at].focus({ preventScroll: true });
      return;
    }
    const act = keys[event.key];
    if (act) {
      if (at < 0 && event.key !== "j") go_to(0);
      act();
      event.preventDefault();
    } else if (/^[a-z0-9]$/.test(event.key)) {
      if (at < 0) go_to(0);
      if (choose(event.key)) event.preventDefault();
    }
  });

  const before = sessionStorage.getItem(AT);
  if (before !== null) go_to(Number(before));
})();
