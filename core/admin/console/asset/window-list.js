import { assign, fill, make } from "./element.js";

/** Rows beyond the visible ones, so that scrolling shows no gap. */
const spare = 6;
const rowHeight = 60;

/**
 * A list of any length in the page's nodes of a screenful: rows of one height, of which only those in sight exist.
 * `render(item)` makes a row; `keyOf(item)` names it, and a row that stays in sight stays the same element.
 */
export class WindowList {
  #rows = make("ol", "rows");
  #empty = make("p", "faint empty");
  #options;
  #items = [];
  /** Rows in the page by key. */
  #shown = new Map();
  #frame = 0;
  #observer = new ResizeObserver(() => this.#schedule());

  constructor({ label, empty, render, keyOf }) {
    this.#options = { render, keyOf };
    this.#empty.textContent = empty;
    assign(this.#rows, { role: "list" });
    this.element = assign(make("div", "window", this.#rows, this.#empty), {
      role: "region",
      "aria-label": label,
      tabindex: "0",
    });
    this.element.addEventListener("scroll", () => this.#schedule(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.#move(event));
    this.#observer.observe(this.element);
  }

  get length() {
    return this.#items.length;
  }

  /** Shows these items. `added`: how many came in front since the last time, so that what is read stays where it is. */
  show(items, added = 0) {
    this.#items = items;
    this.#empty.hidden = items.length > 0;
    this.#rows.hidden = items.length === 0;
    this.#rows.style.height = `${items.length * rowHeight}px`;
    const isRead = this.element.scrollTop > 0 || this.#rows.contains(document.activeElement);
    if (added > 0 && isRead) this.element.scrollTop += added * rowHeight;
    this.#schedule();
  }

  /** Makes each row anew, where what they show has changed and their keys have not. */
  renew() {
    this.#shown.clear();
    fill(this.#rows);
    this.#schedule();
  }

  /** Marks the row that leads to what the page shows. */
  mark() {
    this.#schedule();
  }

  close() {
    this.#observer.disconnect();
    cancelAnimationFrame(this.#frame);
  }

  #schedule() {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.#frame = 0;
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / rowHeight) - spare);
    const last = Math.min(this.#items.length, Math.ceil((scrollTop + clientHeight) / rowHeight) + spare);
    const now = new Map();
    for (let at = first; at < last; at++) {
      const item = this.#items[at];
      const key = this.#options.keyOf(item);
      const row = this.#shown.get(key) ?? make("li", "row", this.#made(item));
      row.style.transform = `translateY(${at * rowHeight}px)`;
      assign(row, { "aria-posinset": String(at + 1), "aria-setsize": String(this.#items.length) });
      const place = row.querySelector("a.row-link");
      if (place !== null) assign(place, { "aria-current": place.hash === location.hash ? "true" : null });
      now.set(key, row);
    }
    for (const [key, row] of this.#shown) if (now.get(key) !== row) row.remove();
    this.#shown = now;
    // Rows are in the order of the list, for those who go through them by keyboard.
    let before = null;
    for (const row of now.values()) {
      const place = before === null ? this.#rows.firstChild : before.nextSibling;
      if (place !== row) this.#rows.insertBefore(row, place);
      before = row;
    }
  }

  #made(item) {
    const element = this.#options.render(item);
    // A row that leads nowhere is reached by keyboard all the same: the list moves from row to row.
    if (element.querySelector("a") === null && element.tagName !== "A") element.tabIndex = -1;
    return element;
  }

  #move(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
    const step = steps[event.key];
    const isEnd = event.key === "Home" || event.key === "End";
    if ((step === undefined && !isEnd) || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = document.activeElement?.closest(".row");
    const at = row === null || row === undefined ? -1 : Number(row.getAttribute("aria-posinset")) - 1;
    const end = event.key === "Home" ? 0 : this.#items.length - 1;
    this.#focus(isEnd ? end : Math.max(0, Math.min(this.#items.length - 1, at + step)));
    event.preventDefault();
  }

  #focus(at) {
    const item = this.#items[at];
    if (item === undefined) return;
    const { scrollTop, clientHeight } = this.element;
    const top = at * rowHeight;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + rowHeight > scrollTop + clientHeight) this.element.scrollTop = top + rowHeight - clientHeight;
    this.#draw();
    this.#shown.get(this.#options.keyOf(item))?.querySelector("a, button, [tabindex]")?.focus({ preventScroll: true });
  }
}
