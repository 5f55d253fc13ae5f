// The page: asks the server for the run every second, and shows what came.

import { Chart } from "./chart.js";
import { Curves } from "./curves.js";
import { Details } from "./details.js";
import { count, duration, number, share, timeOfDay } from "./format.js";
import { PlanGraph, element } from "./graph.js";
import { followTheme } from "./theme.js";

const EVERY = 1000; // milliseconds between two questions
const EVERY_ENDED = 5000; // the same of a run that has ended: the page then only looks whether the server is there
const PATIENCE = 5000; // how long an answer may take
const RECENT = 10; // seconds over which a rate is taken
const LATE = 15; // seconds without anything new after which the page says so

const ONE_COLUMN = "(max-width: 1000px)"; // as in the style sheet
const ENDED = { finished: "the run has finished", interrupted: "the run was interrupted", failed: "the run has failed" };

const part = (id) => document.getElementById(id);

// What is known of the run; `header` is null before the first answer.
const run = { header: null, snapshots: [], latest: null, events: [], ending: null, updated: 0 };
let graph = null;

const details = new Details(part("details-hint"), part("details-list"), new Chart(part("details-chart")));
const curves = new Curves(
  part("axis"),
  [0, 1].map((index) => ({ select: part(`curve-${index}`), chart: new Chart(part(`chart-${index}`)) })),
);

followTheme(part("theme"), () => {
  curves.redraw();
  details.redraw();
});
ask();

async function ask() {
  let answered = false;
  try {
    const response = await fetch(question(), { signal: AbortSignal.timeout(PATIENCE) });
    if (!response.ok) throw new Error(await response.text());
    const answer = await response.json();
    answered = true;
    take(answer);
  } catch (error) {
    if (answered) throw error; // a mistake of this page, for its console
    say("gone", run.header === null ? "no answer" : gone());
  }
  setTimeout(ask, run.ending === null ? EVERY : EVERY_ENDED);
}

function question() {
  if (run.header === null) return "run.json";
  const last = run.snapshots[run.snapshots.length - 1];
  return `run.json?after=${last === undefined ? 0 : last.seconds}`;
}

function gone() {
  const how = run.ending === null ? "no answer" : `${run.ending.how}, server closed`;
  return `${how}; figures of ${timeOfDay(run.updated)}`;
}

function take(answer) {
  if (answer.plan !== undefined) {
    Object.assign(run, { header: answer, snapshots: answer.snapshots });
    begin();
  } else if (answer.started !== run.header.started) {
    run.header = null; // another run is served here: the next question is for all of it
    return;
  } else {
    run.snapshots.push(...answer.snapshots);
  }
  for (const name of ["latest", "events", "ending", "updated"]) run[name] = answer[name];
  showState(answer.now - answer.updated);
  showTotals();
  showLog();
  if (run.latest !== null) showFigures();
}

function begin() {
  const { title, engine, plan } = run.header;
  document.title = `${title} · pipeflow`;
  part("title").textContent = title;
  part("engine").textContent = engine;
  part("engine").hidden = false;
  graph = new PlanGraph(part("graph"), plan, pick);
  details.begin(plan.nodes);
}

function pick(place) {
  graph.select(place);
  details.pick(place);
  showDetails();
  // In one column the figures may be out of sight, and nobody would see that anything has happened.
  if (matchMedia(ONE_COLUMN).matches) part("details").scrollIntoView({ block: "nearest" });
}

/** The figures of a node in a snapshot, by name. */
function figures(snapshot, place) {
  const row = snapshot.nodes[place];
  return Object.fromEntries(run.header.columns.map((name, column) => [name, row[column]]));
}

function history() {
  const last = run.snapshots[run.snapshots.length - 1];
  if (run.latest === null || (last !== undefined && last.seconds >= run.latest.seconds)) return run.snapshots;
  return [...run.snapshots, run.latest];
}

function showState(age) {
  if (run.ending !== null) say(run.ending.how, `${run.ending.how} at ${timeOfDay(run.ending.time)}`);
  else if (run.latest === null) say("running", "starting");
  else if (age > LATE) say("late", `nothing new for ${duration(age)}`);
  else say("running", "running");
}

function say(kind, text) {
  const state = part("state");
  state.className = `badge ${kind}`;
  if (state.textContent !== text) state.textContent = text; // a screen reader tells of every change
}

function showTotals() {
  const { latest } = run;
  if (latest === null) return;
  const shown = [["elapsed", duration(latest.seconds)]];
  if (latest.steps > 0) {
    shown.push(["environment steps", count(latest.steps)], ["steps/s", number(stepsPerSecond())]);
  }
  if (latest.restarts > 0) shown.push(["restarts", count(latest.restarts)]);
  if (latest.lost > 0) shown.push(["calls lost", count(latest.lost)]);
  if (latest.given_up.length > 0) shown.push(["given up", latest.given_up.join(", ")]);
  part("totals").replaceChildren(
    ...shown.map(([name, value]) => {
      const pair = element("div");
      pair.append(element("dt", "", name), element("dd", "", value));
      return pair;
    }),
  );
}

/** Environment steps per second, over the last ten seconds or a little more. */
function stepsPerSecond() {
  const { latest } = run;
  const before = run.snapshots.findLast((snapshot) => snapshot.seconds <= latest.seconds - RECENT) ?? run.snapshots[0];
  if (before === undefined || before.seconds >= latest.seconds) return NaN;
  return (latest.steps - before.steps) / (latest.seconds - before.seconds);
}

function showFigures() {
  graph.update(run.latest, figures);
  const { advice, busy, node } = run.latest.bottleneck;
  const told = part("bottleneck");
  const what = node === null ? "No bottleneck" : `Bottleneck: ${run.header.plan.nodes[node].name}`;
  told.textContent = `${what}, busy ${share(busy)} of the time. ${advice}`;
  told.classList.toggle("none", node === null);
  told.hidden = false;
  curves.update(history());
  showDetails();
}

function showDetails() {
  if (run.latest !== null) details.update(history(), figures);
}

function showLog() {
  const lines = run.events.map((event) => line(event.time, event.message, ""));
  if (run.ending !== null) {
    const told = run.ending.message || ENDED[run.ending.how];
    lines.push(line(run.ending.time, told, run.ending.how));
  }
  const log = part("log");
  if (lines.length === 0) lines.push(element("li", "hint", "None so far."));
  const told = lines.map((one) => one.textContent).join("\n");
  if (told === log.dataset.told) return; // leave what somebody reads or selects alone
  log.dataset.told = told;
  log.replaceChildren(...lines);
  log.scrollTop = log.scrollHeight;
}

function line(time, message, kind) {
  const made = element("li", kind);
  made.append(element("time", "", timeOfDay(time)), message);
  return made;
}
