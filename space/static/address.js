// Keeps the choices of a page in its address: read once when it opens, rewritten when a reader chooses.
// The other half, with the same spelling of values, is space/address.py.
window.arbAddress = (() => {
  let controls = null; // [{name, shape, default, choices, max_length, low, high}], null until the page is open
  const values = new Map();

  const itemOf = (part) => part.replaceAll("%2C", ",").replaceAll("%25", "%");
  const textOf = (value) =>
    Array.isArray(value)
      ? value.map((item) => String(item).replaceAll("%", "%25").replaceAll(",", "%2C")).join(",")
      : value === true ? "1" : value === false ? "0" : String(value ?? "");
  const spelled = (text) =>
    encodeURIComponent(text)
      .replace(/%(2F|3A|2C)/g, (code) => decodeURIComponent(code))
      .replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);

  function one(control, text) {
    if (control.choices === null) return text.length <= control.max_length ? text : undefined;
    return control.choices.find((choice) => String(choice) === text);
  }

  // The value that a text of the address gives a control; undefined where the control has no such value.
  function read(control, text) {
    if (control.shape === "flag") return { 0: false, 1: true }[text];
    if (control.shape === "number") {
      const value = text.trim() === "" ? NaN : Number(text);
      const within = !(value < (control.low ?? -Infinity)) && !(value > (control.high ?? Infinity));
      return Number.isFinite(value) && within ? value : undefined;
    }
    if (control.shape !== "many") return one(control, text);
    const items = [...new Set(text.split(",").filter(Boolean).map(itemOf))].map((item) => one(control, item));
    return items.includes(undefined) || items.length > 50 ? undefined : items;
  }

  function open(found) {
    const given = new URLSearchParams(window.location.search);
    const refused = [];
    for (const control of found) {
      let value = control.default;
      if (given.has(control.name)) {
        const texts = given.getAll(control.name);
        const wanted = read(control, control.shape === "many" ? texts.join(",") : texts[0]);
        if (wanted === undefined) refused.push(control.name);
        else value = wanted;
      }
      values.set(control.name, value);
    }
    controls = found;
    if (refused.length) tell(refused);
    return found.map((control) => values.get(control.name));
  }

  function choose(name, value) {
    if (controls === null) return; // a control that speaks before the address was read
    values.set(name, value);
    write();
  }

  function query() {
    const ours = new Set(controls.map((control) => control.name));
    const parts = controls
      .filter((control) => textOf(values.get(control.name)) !== textOf(control.default))
      .map((control) => `${encodeURIComponent(control.name)}=${spelled(textOf(values.get(control.name)))}`);
    for (const [name, value] of new URLSearchParams(window.location.search)) {
      if (!ours.has(name)) parts.push(`${encodeURIComponent(name)}=${spelled(value)}`);
    }
    return parts.length ? `?${parts.join("&")}` : "";
  }

  function write() {
    const search = query();
    if (search === window.location.search) return;
    window.history.replaceState(window.history.state, "", window.location.pathname + search + window.location.hash);
    // A Space on huggingface.co lives in a frame; this is how the outer address follows.
    if (window.parent !== window) {
      window.parent.postMessage({ queryString: search.slice(1), hash: window.location.hash }, "https://huggingface.co");
    }
    document.dispatchEvent(new CustomEvent("arb:address", { detail: { search } }));
  }

  function tell(names) {
    const notice = document.createElement("p");
    notice.className = "notice address-notice";
    notice.setAttribute("role", "status");
    notice.textContent =
      `This address sets ${names.join(", ")} to something that this page does not know; the usual choice is shown.`;
    document.querySelector(".address-notice")?.remove();
    document.querySelector(".masthead").after(notice);
  }

  return { open, choose };
})();
