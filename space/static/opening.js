// What a page opens with stands outside Gradio's part until that is there; then all pieces move to their places.
window.arbOpening = (() => {
  const parts = new Map();
  const places = new Map();
  const opening = document.getElementById("opening");
  for (const part of opening?.querySelectorAll("[data-part]") ?? []) parts.set(part.dataset.part, part);

  // Called by each place as Gradio makes it. Nothing moves before the last one is there: until then Gradio's
  // part is hidden, and what had moved into it would be gone for a moment.
  function fill(element) {
    const place = element.querySelector("[data-place]");
    if (!place || !parts.has(place.dataset.place)) return;
    places.set(place.dataset.place, place);
    if (places.size === parts.size) finish();
  }

  function finish() {
    for (const [name, place] of places) place.replaceChildren(parts.get(name));
    parts.clear();
    opening?.remove();
    document.body.classList.remove("is-opening");
    document.dispatchEvent(new CustomEvent("arb:opened"));
  }

  return { fill };
})();
