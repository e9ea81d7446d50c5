// A button with data-copy copies the text of the element with that id, and confirms it for a moment.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  const source = button && document.getElementById(button.dataset.copy);
  if (!source) return;
  let said = "Copied";
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch {
    // Without permission to write to the clipboard, select the text so that one keystroke copies it.
    window.getSelection().selectAllChildren(source);
    said = "Press Ctrl+C";
  }
  const before = button.dataset.says ?? (button.dataset.says = button.textContent);
  button.textContent = said;
  window.setTimeout(() => { button.textContent = before; }, 2000);
});
