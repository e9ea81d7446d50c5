// Lines to copy name this Space by the address at which the reader sees it.
(() => {
  for (const place of document.querySelectorAll("[data-origin]")) place.textContent = window.location.origin;
})();
