import { assign, make } from "./element.js";
import { clockTime } from "./text.js";

// A classic script, loaded before this module.
const { uPlot } = globalThis;

const height = 190;
const halfDay = 43_200;
const charts = new Set();

/** Draws every chart again: the theme has changed, and a canvas keeps its colours. */
export function redrawCharts() {
  for (const each of charts) each.redraw();
}

/** The colour of a custom property of the style sheet, in the theme in force. */
function colorOf(name) {
  const probe = make("span", "");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** The same colour, mostly transparent. */
const paleOf = (color) => color.replace(/^rgb\((.*)\)$/, "rgba($1, 0.16)");

/**
 * A chart over time. `lines`: `{label, color, isFilled}` in drawing order. Of `options`, `unit(value)` writes a value, `sum(data)`
 * puts all in a sentence for those who do not see it, `least` is the least height of the scale, `stacked` lines include those after
 * them, and with `bars` and `days` there is a column a day.
 */
export class Chart {
  #place = make("div", "plot");
  #title;
  #lines;
  #options;
  #data = null;
  #plot = null;
  #observer = new ResizeObserver(() => this.#resize());

  constructor(title, lines, options) {
    this.#title = title;
    this.#lines = lines;
    this.#options = options;
    const legend = lines.map(({ label, color }) => make("li", "", make("span", `swatch ${color}`), label));
    this.element = make("figure", "chart", make("figcaption", "", title, make("ul", "legend", legend)), this.#place);
    assign(this.#place, { role: "img", "aria-label": title });
    this.#observer.observe(this.#place);
    charts.add(this);
  }

  /** `data`: times in seconds, then the values of each line. */
  show(data) {
    this.#data = data;
    if (this.#plot === null) this.#make();
    else this.#plot.setData(data);
    assign(this.#place, { "aria-label": `${this.#title}. ${this.#options.sum(data)}` });
  }

  redraw() {
    this.#plot?.destroy();
    this.#plot = null;
    if (this.#data !== null) this.#make();
  }

  close() {
    charts.delete(this);
    this.#observer.disconnect();
    this.#plot?.destroy();
  }

  #resize() {
    const width = this.#place.clientWidth;
    if (this.#plot === null) this.#make();
    else if (width > 0 && width !== this.#plot.width) this.#plot.setSize({ width, height });
  }

  #make() {
    const width = this.#place.clientWidth;
    if (width === 0 || this.#data === null) return;
    const { unit, days = false, bars = false, stacked = false } = this.#options;
    const [text, grid] = [colorOf("faint"), colorOf("line")];
    const axis = { stroke: text, font: "12px system-ui", grid: { stroke: grid, width: 1 }, ticks: { show: false } };
    const times = (_, splits) => splits.map((each) => (days ? dayOf(each) : clockTime(each * 1_000)));
    const series = this.#lines.map(({ label, color, isFilled }) => {
      const stroke = colorOf(color);
      const paths = bars ? { paths: uPlot.paths.bars({ size: [0.7, 48] }) } : {};
      return {
        label,
        stroke,
        width: bars ? 0 : 1.5,
        points: { show: false },
        ...(isFilled ? { fill: fillOf(stroke, bars) } : {}),
        ...paths,
      };
    });
    const options = {
      width,
      height,
      padding: [8, 12, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { time: true, ...(days ? { range: (_, min, max) => [min - halfDay, max + halfDay] } : {}) },
        y: { range: (_, __, max) => [0, Math.max(max * 1.1, this.#options.least ?? 1)] },
      },
      series: [{}, ...series],
      // Of each line only the part above the next is filled.
      bands: stacked ? series.slice(1).map((_, at) => ({ series: [at + 1, at + 2] })) : [],
      axes: [
        { ...axis, values: times, space: days ? 60 : 80, size: 32 },
        { ...axis, values: (_, splits) => splits.map(unit), size: 64 },
      ],
    };
    this.#plot = new uPlot(options, this.#data, this.#place);
  }
}

const fillOf = (stroke, isSolid) => (isSolid ? stroke : paleOf(stroke));

const dayOf = (seconds) =>
  new Date(seconds * 1_000).toLocaleDateString("en", { day: "numeric", month: "short", timeZone: "UTC" });
