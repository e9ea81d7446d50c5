// Light or dark: the system's wish, unless the reader chose; the choice is kept in this browser only.
(() => {
  const toggle = document.querySelector(".theme-toggle");

  function show() {
    const isDark = arbTheme.wished() === "dark";
    if (document.body.classList.contains("dark") !== isDark) document.body.classList.toggle("dark", isDark);
    toggle?.setAttribute("aria-pressed", String(isDark));
  }

  toggle?.addEventListener("click", () => {
    const next = arbTheme.wished() === "dark" ? "light" : "dark";
    try {
      if (next === arbTheme.system()) localStorage.removeItem("arb-theme");
      else localStorage.setItem("arb-theme", next);
    } catch {
      arbTheme.chosen = () => next; // no place to keep it: for this page only
    }
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  // On /submit Gradio sets the class too, when it starts: the reader's choice stands.
  new MutationObserver(show).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  show();
})();
