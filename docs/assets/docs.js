// Names and keyboard focus that the theme does not give: the search dialog, and tables and code wider than a phone.
document$.subscribe(() => setTimeout(() => {
  document.querySelector("[data-md-component=search]")?.setAttribute("aria-label", "Search")
  for (const wide of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre")) wide.tabIndex = 0
}))
