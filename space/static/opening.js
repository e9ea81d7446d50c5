// What a page opens with stands outside Gradio's part until that is there; then each piece moves to its place.
window.arbOpening = (() => {
  const parts = new Map();
  const opening = document.getElementById("opening");
  for (const part of opening?.querySelectorAll("[data-part]") ?? []) parts.set(part.dataset.part, part);

  // Called by each place as Gradio makes it; the last one ends the opening.
  function fill(element) {
    const place = element.querySelector("[data-place]");
    const part = place && parts.get(place.dataset.place);
    if (!part) return;
    place.replaceChildren(part);
    parts.delete(place.dataset.place);
    if (parts.size === 0) finish();
  }

  function finish() {
    opening?.remove();
    document.body.classList.remove("is-opening");
    document.dispatchEvent(new CustomEvent("arb:opened"));
  }

  return { fill };
})();
