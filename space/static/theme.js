// Light or dark: the system's setting, unless the reader chose one. The choice is stored in this browser only.
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
      arbTheme.chosen = () => next; // without storage it counts only for this page
    }
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  // On /submit Gradio also sets the class when it starts; this restores the reader's choice.
  new MutationObserver(show).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  show();
})();
