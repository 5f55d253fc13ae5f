// All figures of the stage that is picked, and its rate over time.

import { count, number, share } from "./format.js";
import { element, placeOf } from "./graph.js";

export class Details {
  constructor(hint, list, chart) {
    Object.assign(this, { hint, list, chart, nodes: [], place: null });
  }

  /** Forget what was picked: there is another plan. */
  begin(nodes) {
    this.nodes = nodes;
    this.place = null;
    this.hint.hidden = false;
    this.list.replaceChildren();
    this.chart.holder.hidden = true;
  }

  /** Show the stage at this place of the plan from now on. */
  pick(place) {
    this.place = place;
    this.hint.hidden = true;
    this.chart.holder.hidden = false;
  }

  /** Show the figures of the newest snapshot; `figures` gives those of a node in a snapshot. */
  update(history, figures) {
    if (this.place === null) return;
    const node = this.nodes[this.place];
    const figure = figures(history[history.length - 1], this.place);
    const shown = [
      ["items in", count(figure.items_in)],
      ["items out", count(figure.items_out)],
      ["items/s", number(figure.per_second)],
      ["busy", share(figure.busy)],
      ["waiting", share(figure.waiting)],
      ["waiting seconds", number(figure.waiting_seconds)],
      ["queue", count(figure.queue)],
      ["policy lag", `${number(figure.mean_lag)}, at most ${figure.max_lag}`],
    ];
    const wide = [
      ["stage", node.name],
      ["runs in", placeOf(node)],
      ["makes", node.item_type],
      ["written at", node.site],
    ];
    this.list.replaceChildren(...wide.map((pair) => entry(pair, "wide")), ...shown.map((pair) => entry(pair, "")));
    const xs = history.map((snapshot) => snapshot.seconds);
    this.chart.show("items/s", "seconds", xs, history.map((one) => figures(one, this.place).per_second));
  }

  /** Draw again, after a change of the theme. */
  redraw() {
    this.chart.redraw();
  }
}

function entry([name, value], kind) {
  const made = element("div", kind);
  made.append(element("dt", "", name), element("dd", "", value));
  return made;
}
