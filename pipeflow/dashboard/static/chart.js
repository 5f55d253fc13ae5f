// One curve over steps or seconds, drawn by uPlot in the page's colours.

import { number } from "./format.js";

/* global uPlot */

const LEGEND = 26; // pixels, as in the style sheet
const FONT = "12px system-ui, sans-serif";

export class Chart {
  /** A chart that fills `holder`. */
  constructor(holder) {
    this.holder = holder;
    this.plot = null;
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(holder);
  }

  /** Show a curve: its name, the name of the axis below it, and the numbers of both. */
  show(name, axis, xs, ys) {
    if (this.plot === null) this.plot = new uPlot(this.options(), [xs, ys], this.holder);
    // The legend names the curve; uPlot has no call for a new name.
    const labels = this.plot.root.querySelectorAll(".u-legend .u-label");
    labels[0].textContent = axis;
    labels[1].textContent = name;
    this.plot.setData([xs, ys]);
    this.holder.setAttribute("role", "img");
    const last = ys.length > 0 ? `, ${number(ys[ys.length - 1])} at the end` : "";
    this.holder.setAttribute("aria-label", `${name} against ${axis}: ${ys.length} points${last}`);
    this.holder.dataset.curve = name;
  }

  /** Draw again, after a change of the theme. */
  redraw() {
    this.plot?.redraw();
  }

  size() {
    return { width: this.holder.clientWidth, height: this.holder.clientHeight - LEGEND };
  }

  options() {
    const axis = {
      stroke: () => colour("--muted"),
      grid: { stroke: () => colour("--line"), width: 1 },
      ticks: { stroke: () => colour("--line"), width: 1 },
      font: FONT,
      values: (plot, values) => values.map(number),
    };
    // Without a cursor the legend tells the newest number.
    const value = (plot, shown, series) => number(shown ?? plot.data[series].at(-1) ?? NaN);
    return {
      ...this.size(),
      scales: { x: { time: false } },
      axes: [{ ...axis, size: 32 }, { ...axis, size: 58 }],
      cursor: { drag: { x: true, y: false } },
      series: [
        { label: "x", value },
        {
          label: "y",
          value,
          stroke: () => colour("--curve"),
          width: 1.6,
          spanGaps: true,
          points: { size: 5, fill: () => colour("--curve") },
        },
      ],
    };
  }
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
