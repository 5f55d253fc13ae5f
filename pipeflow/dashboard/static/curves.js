// The curves of a run, two at a time, each picked from all that were recorded.

// What a run is first asked for, and then what explains it.
const FIRST = [/^recent_return$/, /return/, /reward/, /./];
const SECOND = [/policy_loss/, /loss/, /error/, /./];

export class Curves {
  /** axis: the select of what is below the curves. picks: of each curve its select and its chart. */
  constructor(axis, picks) {
    this.axis = axis;
    this.picks = picks;
    this.names = [];
    this.history = [];
    axis.addEventListener("change", () => this.draw());
    for (const { select } of picks) select.addEventListener("change", () => this.draw());
  }

  /** Show the curves of a run's snapshots. */
  update(history) {
    this.history = history;
    const names = [...new Set(history.flatMap((snapshot) => Object.keys(snapshot.curves)))].sort();
    if (names.join() !== this.names.join()) this.offer(names);
    // A run whose items say nothing of steps can only be drawn against time.
    const [steps] = this.axis.options;
    steps.disabled = !history.some((snapshot) => snapshot.steps > 0);
    if (steps.disabled) this.axis.value = "seconds";
    this.draw();
  }

  /** Draw again, after a change of the theme. */
  redraw() {
    for (const { chart } of this.picks) chart.redraw();
  }

  offer(names) {
    const firstTime = this.names.length === 0;
    this.names = names;
    this.picks.forEach(({ select }, index) => {
      const before = select.value;
      select.replaceChildren(...names.map((name) => new Option(name.replaceAll("_", " "), name)));
      if (firstTime) select.value = preferred(names, index === 0 ? FIRST : SECOND);
      else if (names.includes(before)) select.value = before;
    });
  }

  draw() {
    const axis = this.axis.value;
    for (const { select, chart } of this.picks) {
      const name = select.value;
      if (!name) continue;
      const known = this.history.filter((snapshot) => name in snapshot.curves);
      const xs = known.map((snapshot) => snapshot[axis]);
      chart.show(select.selectedOptions[0].text, axis, xs, known.map((snapshot) => snapshot.curves[name]));
    }
  }
}

function preferred(names, wishes) {
  for (const wish of wishes) {
    const found = names.find((name) => wish.test(name));
    if (found !== undefined) return found;
  }
  return "";
}
