// For forms that HTMX sends (hx-get, hx-push-url): keeps defaults out of the URL, so each choice has one URL.
document.addEventListener("htmx:configRequest", (event) => {
  event.detail.headers.Accept = "text/html"; // so that an error is a page, whose text is shown
  if (event.detail.verb !== "get") return;
  const form = event.detail.elt.closest("form") ?? event.detail.elt.form;
  const { formData } = event.detail;
  for (const name of new Set(formData.keys())) {
    const field = form?.elements.namedItem(name); // form.elements[name] would fail for a field named "length"
    const first = field instanceof RadioNodeList ? field[0] : field;
    const usual = first?.closest("[data-default]")?.dataset.default;
    const values = [...new Set(formData.getAll(name))].filter((value) => value !== "");
    const isList = values.length > 1 || first?.type === "checkbox";
    formData.delete(name);
    if (values.length === 0 || values.join(",") === usual) continue;
    // Escape commas within an item, as commas separate the items.
    const escaped = (value) => (isList ? value.replaceAll("%", "%25").replaceAll(",", "%2C") : value);
    formData.append(name, values.map(escaped).join(","));
  }
});

// Applies choices that were made while the scripts were still loading. The forms have autocomplete="off", so the
// browser restores nothing after back or a reload, and every difference from the page is a choice of the reader.
document.addEventListener("DOMContentLoaded", () => {
  const usual = (select) => Math.max(0, [...select.options].findLastIndex((option) => option.defaultSelected));
  const isChanged = (field) =>
    field.matches("select") ? field.selectedIndex !== usual(field)
      : field.matches("[type=checkbox], [type=radio]") ? field.checked !== field.defaultChecked
        : field.matches("input") && field.value !== field.defaultValue;
  for (const form of document.querySelectorAll("form[hx-get]"))
    if ([...form.elements].some(isChanged)) form.requestSubmit(); // one request for all changes
});

document.addEventListener("htmx:beforeRequest", (event) => event.detail.target.setAttribute("aria-busy", "true"));
document.addEventListener("htmx:afterRequest", (event) => {
  const { target, successful, xhr } = event.detail;
  target.removeAttribute("aria-busy");
  target.querySelector(":scope > .not-loaded")?.remove();
  if (successful) return;
  const notice = document.createElement("p");
  notice.className = "notice bad not-loaded";
  notice.setAttribute("role", "alert");
  const page = new DOMParser().parseFromString(xhr?.responseText ?? "", "text/html");
  notice.textContent = page.querySelector("main .lead")?.textContent ?? "This could not be loaded: the server does not respond, or you are offline. The content below may be out of date. Choose again to retry.";
  (target.cells?.[0] ?? target).prepend(notice); // in a table's row, within its first cell
});

// Menus of checkboxes: their text names the ticked ones; a click elsewhere or Escape closes them.
(() => {
  const describe = (menu) => {
    const texts = [...menu.querySelectorAll("input:checked")].map((field) => field.nextElementSibling.textContent);
    const shown = menu.querySelector(".menu-text");
    if (!shown) return; // a menu that only has a name
    shown.textContent = texts.length === 0 ? shown.dataset.everything : texts.length === 1 ? texts[0] : `${texts[0]} +${texts.length - 1}`;
  };
  const close = (event) => {
    for (const menu of document.querySelectorAll(".menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  };
  document.addEventListener("change", (event) => {
    const menu = event.target.closest?.(".menu");
    if (menu) describe(menu);
  });
  document.addEventListener("submit", (event) => event.target.querySelectorAll(".menu").forEach(describe));
  document.addEventListener("click", close);
  document.addEventListener("focusin", close);
  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && document.querySelector(".menu[open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
})();
