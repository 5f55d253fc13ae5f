// The plan: a button for every stage, laid out by dagre, and the items' types on the lines between them.

import { number, share } from "./format.js";

/* global dagre */

const SVG = "http://www.w3.org/2000/svg";
// Pixels of a stage's button: where it is narrow its figures take two lines.
const WIDEST = 300;
const NARROWEST = 128;
const ONE_LINE = 290;
const HEIGHT = 68;
const HEIGHT_NARROW = 86;
const MARGIN = 12; // above and below the plan, for the mark of the bottleneck
const GAP = 18; // between buttons side by side
const LANE = 34; // beside the plan, for the line of weights

export class PlanGraph {
  /** A plan drawn into `holder`; `picked` is called with the place of a stage that is clicked. */
  constructor(holder, plan, picked) {
    this.holder = holder;
    this.plan = plan;
    this.buttons = plan.nodes.map((node, place) => stageButton(node, () => picked(place)));
    this.canvas = element("div", "canvas");
    const wide = arrange(plan, WIDEST, HEIGHT);
    this.columns = Math.round((wide.graph().width + GAP) / (WIDEST + GAP));
    this.lanes = lanesOf(plan, wide);
    holder.replaceChildren(this.canvas);
    this.width = 0;
    new ResizeObserver(() => this.draw()).observe(holder);
    this.draw();
  }

  /** Show the figures of a snapshot. */
  update(snapshot, figures) {
    this.buttons.forEach(({ root, mark, rates, waits, busy }, place) => {
      const figure = figures(snapshot, place);
      const found = snapshot.bottleneck.node === place;
      root.classList.toggle("bottleneck", found);
      mark.hidden = !found;
      // Only gathers have a lag, and they run no code that could be busy.
      const load = figure.max_lag > 0 ? `lag ${number(figure.mean_lag)}` : `busy ${share(figure.busy)}`;
      rates.textContent = `${number(figure.per_second)}/s · ${load}`;
      waits.textContent = `queue ${figure.queue} · wait ${share(figure.waiting)}`;
      busy.style.width = `${100 * figure.busy}%`;
    });
  }

  /** Mark the stage that is picked. */
  select(picked) {
    this.buttons.forEach(({ root }, place) => root.setAttribute("aria-pressed", String(place === picked)));
  }

  /** Draw the plan for the width that there is. */
  draw() {
    const [left, right] = [-1, 1].map((side) => LANE * this.lanes.filter((lane) => lane === side).length);
    const room = Math.floor((this.holder.clientWidth - left - right) / this.columns - GAP);
    const width = Math.max(NARROWEST, Math.min(WIDEST, room));
    if (width === this.width) return;
    this.width = width;
    const narrow = width < ONE_LINE;
    const height = narrow ? HEIGHT_NARROW : HEIGHT;
    this.canvas.classList.toggle("narrow", narrow);
    const layout = arrange(this.plan, width, height);
    const size = { width: layout.graph().width, height: layout.graph().height };
    this.buttons.forEach(({ root }, place) => {
      const { x, y } = layout.node(String(place));
      Object.assign(root.style, pixels({ width, height, left: x - width / 2, top: y - height / 2 }));
    });
    Object.assign(this.canvas.style, pixels(size));
    this.canvas.style.marginLeft = `max(${left}px, calc(50% - ${size.width / 2}px))`;
    this.canvas.style.borderRight = `${right}px solid transparent`; // room that can be scrolled to
    this.canvas.replaceChildren(lines(this.plan, layout, this.lanes), ...this.buttons.map(({ root }) => root));
  }
}

/** Where a stage runs, in words. */
export function placeOf(node) {
  if (node.kind === "driver") return "driver";
  return node.count > 1 ? `${node.actors} × ${node.count}` : node.actors;
}

export function element(tag, kind, text) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  return made;
}

function stageButton(node, picked) {
  const root = element("button", `node ${node.kind}`);
  root.type = "button";
  root.title = `${node.name}\n${node.site}`;
  root.setAttribute("aria-pressed", "false");
  const mark = element("span", "mark", "bottleneck");
  mark.hidden = true;
  const figures = element("span", "figures");
  const [rates, waits] = [element("span", "", "–"), element("span")];
  figures.append(rates, waits);
  const busy = element("span", "busy");
  root.append(mark, element("span", "name", shortName(node)), element("span", "place", placeOf(node)), figures, busy);
  root.addEventListener("click", picked);
  return { root, mark, rates, waits, busy };
}

// The name without the group that the line below it says.
function shortName(node) {
  const group = `${node.actors}.`;
  return node.name.startsWith(group) ? node.name.slice(group.length) : node.name;
}

// Weights go back to where the items came from: the layout is of the items alone.
function arrange(plan, width, height) {
  const layout = new dagre.graphlib.Graph();
  layout.setGraph({ rankdir: "TB", nodesep: GAP, ranksep: 22, edgesep: 16, marginx: 2, marginy: MARGIN });
  plan.nodes.forEach((node, place) => layout.setNode(String(place), { width, height }));
  for (const { source, target, label, weights } of plan.edges) {
    if (weights) continue;
    const size = { width: Math.min(7 * label.length, width), height: 16, labelpos: "c" };
    layout.setEdge(String(source), String(target), size);
  }
  dagre.layout(layout);
  return layout;
}

// The sides of the plan on which the lines of weights pass it, -1 left and 1 right: the nearer ones.
function lanesOf(plan, layout) {
  const { width } = layout.graph();
  const x = (place) => layout.node(String(place)).x;
  return plan.edges.filter((edge) => edge.weights).map(({ source, target }) => (x(source) + x(target) > width + 1 ? 1 : -1));
}

function lines(plan, layout, lanes) {
  const { width, height } = layout.graph();
  const root = svg("svg", { width, height, "aria-hidden": "true" });
  root.append(arrow("items"), arrow("weights"));
  const labels = [];
  let passed = 0; // lines of weights
  const taken = { [-1]: 0, 1: 0 };
  for (const { source, target, label, weights } of plan.edges) {
    const kind = weights ? "weights" : "items";
    const [from, to] = [layout.node(String(source)), layout.node(String(target))];
    let route;
    if (weights) {
      const side = lanes[passed];
      taken[side] += 1;
      passed += 1;
      route = around(from, to, side, side > 0 ? width + LANE * (taken[1] - 0.5) : -LANE * (taken[-1] - 0.5));
    } else route = through(layout.edge(String(source), String(target)));
    root.append(svg("path", { d: route.path, class: kind, "marker-end": `url(#arrow-${kind})` }));
    if (!label) continue;
    const turned = weights ? `rotate(-90 ${route.x} ${route.y})` : "";
    const text = svg("text", { x: route.x, y: route.y, class: kind, transform: turned });
    text.textContent = label;
    labels.push(text);
  }
  root.append(...labels);
  return root;
}

// A line through the points that the layout gives, with its corners rounded.
function through({ points, x, y }) {
  const [first, ...rest] = points;
  let path = `M${first.x} ${first.y}`;
  for (let index = 0; index < rest.length - 1; index += 1) {
    const [here, next] = [rest[index], rest[index + 1]];
    path += `Q${here.x} ${here.y} ${(here.x + next.x) / 2} ${(here.y + next.y) / 2}`;
  }
  const last = rest[rest.length - 1];
  return { path: `${path}L${last.x} ${last.y}`, x, y };
}

// A line that passes the plan on one side, at x.
function around(from, to, side, x) {
  const [start, end] = [from.x + (side * from.width) / 2, to.x + (side * to.width) / 2];
  const turn = 10;
  const down = to.y > from.y ? 1 : -1;
  const path =
    `M${start} ${from.y}H${x - side * turn}Q${x} ${from.y} ${x} ${from.y + down * turn}` +
    `V${to.y - down * turn}Q${x} ${to.y} ${x - side * turn} ${to.y}H${end}`;
  return { path, x, y: (from.y + to.y) / 2 };
}

function arrow(kind) {
  const size = { markerWidth: 8, markerHeight: 8, refX: 7, refY: 4, orient: "auto" };
  const marker = svg("marker", { id: `arrow-${kind}`, class: kind, ...size });
  marker.append(svg("path", { d: "M0 0L8 4L0 8z" }));
  return marker;
}

function svg(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function pixels(sizes) {
  return Object.fromEntries(Object.entries(sizes).map(([name, size]) => [name, `${size}px`]));
}
