import { timeLeft } from "./text.js";

/** An element with texts and elements inside; nothing, lists and numbers are taken as well. */
export function make(tag, className, ...inside) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...inside.flat(2).filter(isShown).map(asNode));
  return element;
}

const isShown = (each) => each !== null && each !== undefined && each !== false;
const asNode = (each) => (each instanceof Node ? each : String(each));

/** Replaces what an element has inside. */
export function fill(place, ...inside) {
  place.replaceChildren(...inside.flat(2).filter(isShown).map(asNode));
  return place;
}

/**
 * Replaces what an element has inside, and leaves in place what stays the same: a link that somebody has the focus on, or
 * presses the mouse on, goes on being that link. Items with links are told apart by where the first of these leads.
 */
export function update(place, ...inside) {
  const next = make("div", "", ...inside);
  const focused = document.activeElement;
  mergeInto(place, next);
  if (focused !== document.activeElement && place.contains(focused)) focused.focus({ preventScroll: true });
  return place;
}

function mergeInto(place, next) {
  const left = new Map();
  for (const each of place.childNodes) left.set(keyOf(each), [...(left.get(keyOf(each)) ?? []), each]);
  const nodes = [...next.childNodes].map((each) => {
    const known = left.get(keyOf(each))?.shift();
    return known === undefined ? each : merged(known, each);
  });
  for (const each of [...left.values()].flat()) each.remove();
  nodes.forEach((each, at) => {
    if (place.childNodes[at] !== each) place.insertBefore(each, place.childNodes[at] ?? null);
  });
}

function keyOf(node) {
  const link = node.nodeName === "LI" ? node.querySelector("a") : node;
  return `${node.nodeName} ${link?.href ?? ""}`;
}

function merged(known, next) {
  if (known.nodeType !== Node.ELEMENT_NODE) {
    if (known.data !== next.data) known.data = next.data;
    return known;
  }
  for (const { name } of [...known.attributes]) if (!next.hasAttribute(name)) known.removeAttribute(name);
  for (const { name, value } of next.attributes) {
    if (known.getAttribute(name) !== value) known.setAttribute(name, value);
  }
  mergeInto(known, next);
  return known;
}

/** Sets attributes; `null` removes one. */
export function assign(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null) element.removeAttribute(name);
    else element.setAttribute(name, value);
  }
  return element;
}

export function link(href, className, ...inside) {
  return assign(make("a", className, ...inside), { href });
}

export function button(text, onClick, className = "") {
  const element = assign(make("button", className, text), { type: "button" });
  element.addEventListener("click", onClick);
  return element;
}

let ids = 0;

/** A part of a page with a heading that names it. */
export function card(title, ...inside) {
  const heading = make("h2", "", title);
  heading.id = `heading-${++ids}`;
  return assign(make("section", "card", heading, ...inside), { "aria-labelledby": heading.id });
}

/** Terms with what they are; those without a value are left out. */
export function facts(pairs) {
  const rows = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return make(
    "dl",
    "facts",
    rows.map(([term, value]) => make("div", "", make("dt", "", term), make("dd", "", value))),
  );
}

/** A state as a word with its colour: the word says it without the colour. */
export const pill = (kind, text) => make("span", `pill ${kind}`, text);

export const faint = (...inside) => make("p", "faint", ...inside);

/** A list, or a line that says that it is empty. */
export function list(items, nothing) {
  return items.length > 0 ? make("ul", "list", items) : faint(nothing);
}

/** A field with its label. */
export function field(label, control) {
  control.id = `field-${++ids}`;
  const caption = make("label", "", label);
  caption.htmlFor = control.id;
  return make("div", "field", caption, control);
}

export function select(options, onChange) {
  const control = make(
    "select",
    "",
    options.map(([value, text]) => assign(make("option", "", text), { value })),
  );
  control.addEventListener("change", () => onChange(control.value));
  return control;
}

export function searchBox(placeholder, onInput) {
  const control = assign(make("input", ""), { type: "search", placeholder, autocomplete: "off", spellcheck: "false" });
  control.maxLength = 256;
  control.addEventListener("input", () => onInput(control.value.trim().toLowerCase()));
  return control;
}

/** A share of a whole as a bar; `name` says of what for those who do not see it. */
export function meter(name, value, max) {
  const element = make("meter", "");
  Object.assign(element, { min: 0, max, low: max * 0.4, high: max * 0.8, optimum: 0, value });
  return assign(element, { "aria-label": name });
}

/** A table whose cells are texts or elements. It scrolls sideways in itself. */
export function table(caption, heads, rows) {
  const head = make(
    "tr",
    "",
    heads.map((text) => assign(make("th", "", text), { scope: "col" })),
  );
  const body = rows.map((cells) =>
    make(
      "tr",
      "",
      cells.map((cell) => make("td", "", cell)),
    ),
  );
  const element = make("table", "", make("caption", "", caption), make("thead", "", head), make("tbody", "", body));
  return assign(make("div", "scroll", element), { tabindex: "0", role: "region", "aria-label": caption });
}

/** A message that is read out when it changes, and takes the focus of a button that makes it. */
export function statusLine() {
  return assign(make("p", "status-line"), { role: "status", tabindex: "-1" });
}

/** A time that counts down while it is in the page. */
export function clock(until) {
  return assign(make("time", "countdown", timeLeft(until)), { datetime: until });
}

/** Writes the time that is left anew in everything that counts down. */
export function countDown(place) {
  for (const each of place.querySelectorAll("time.countdown")) each.textContent = timeLeft(each.dateTime);
}
