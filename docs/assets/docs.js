// What the theme leaves out for screen readers and the keyboard: the search dialog's name, that a code block's buttons
// are no part of the site's navigation, and a way to scroll tables and code wider than a phone.
document$.subscribe(() => setTimeout(() => {
  document.querySelector("[data-md-component=search]")?.setAttribute("aria-label", "Search")
  for (const wide of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre")) wide.tabIndex = 0
  for (const buttons of document.querySelectorAll(".md-code__nav")) buttons.setAttribute("role", "group")
}))
