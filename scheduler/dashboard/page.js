"use strict";
// Asks for the cluster every few seconds and shows it. It changes nothing, and asks this server alone.

const STAGES = ["storage", "decode", "transform", "transfer", "trainer"];
const PAGE_ROWS = {streams: 15}, MOST_ROWS = 50;  // of a table; buttons show the rest
const ENDED = ["done", "failed", "partly failed", "cancelled"];
const firstRows = new Map();  // of tables that are not at their beginning
let timer = 0, signedIn = false;

const part = (id) => document.getElementById(id);

/// An element with text, or with elements.
function make(tag, inside, className) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (Array.isArray(inside)) element.append(...inside);
  else if (inside !== undefined) element.textContent = inside;
  return element;
}

const percent = (thousandths) => `${Math.round(thousandths / 10)} %`;

function duration(seconds) {
  if (seconds < 60) return `${Math.max(Math.round(seconds), 0)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  for (; count >= 1024 && unit + 1 < units.length; ++unit) count /= 1024;
  return `${count.toFixed(unit ? 1 : 0)} ${units[unit]}`;
}

/// Columns: [heading, cell of a row, class]. A cell is text or an element.
function table(id, caption, columns, rows) {
  const section = part(id);
  const most = PAGE_ROWS[id] || MOST_ROWS;
  const first = Math.min(firstRows.get(id) || 0, Math.floor(Math.max(rows.length - 1, 0) / most) * most);
  const shown = rows.slice(first, first + most);
  const place = section.scrollLeft;
  if (!rows.length) return section.replaceChildren();
  const head = make("tr", columns.map(([name, , kind]) => {
    const cell = make("th", name, kind);
    cell.scope = "col";
    return cell;
  }));
  const body = make("tbody", shown.map((row) => make("tr", columns.map(([, value, kind]) => {
    const inside = value(row);
    return make("td", inside instanceof Element ? [inside] : inside, kind);
  }))));
  const whole = [make("table", [make("caption", `${caption} (${rows.length})`), make("thead", [head]), body])];
  if (shown.length < rows.length) {
    const turn = (name, to) => {
      const button = make("button", name);
      button.id = `${id}-${name}`;
      button.disabled = to < 0 || to >= rows.length;
      button.onclick = () => { firstRows.set(id, to); table(id, caption, columns, rows); };
      return button;
    };
    whole.push(make("p", [turn("Previous", first - most), ` ${first + 1} to ${first + shown.length} of ${rows.length} `, turn("Next", first + most)]));
  }
  const focused = document.activeElement && document.activeElement.id;
  section.replaceChildren(...whole);
  section.scrollLeft = place;
  if (focused && part(focused)) part(focused).focus();
}

const stalledInHour = (stream) => stream.hour.length ? 1000 - stream.hour[4] : 0;

/// Shares of the last hour as a bar, which says the same in words.
function breakdown(stream) {
  const known = stream.hour.reduce((sum, share) => sum + share, 0);
  const shares = [...STAGES.map((name, i) => [name, stream.hour[i] || 0]), ["nothing", stream.hour.length ? Math.max(1000 - known, 0) : 0]];
  const words = shares.filter(([, share]) => share).map(([name, share]) => `${name} ${percent(share)}`).join(", ");
  const bar = make("div", shares.map(([name, share]) => {
    const piece = make("span", "", name);
    piece.style.flexGrow = share;
    return piece;
  }), "bar");
  bar.title = words || "not known yet";
  bar.role = "img";
  bar.ariaLabel = bar.title;
  return bar;
}

function slowest(stream) {
  if (stream.held) return "held";
  if (stream.unattended) return "no trainer";
  if (stream.waits) return `waits: ${stream.waits}`;
  return stream.stage ? `${stream.stage} on ${stream.node}` : "-";
}

function stallText(stream) {
  return make("span", percent(stream.stalled), stream.stalled >= 100 ? "bad" : "");
}

function showStreams(streams) {
  streams.sort((a, b) => b.stalled - a.stalled || stalledInHour(b) - stalledInHour(a) || b.job - a.job);
  table("streams", "Streams, the most stalled first", [
    ["stream", (s) => s.job, "figure"],
    ["stalled now", stallText, "figure"],
    ["slowest", slowest],
    ["patches/s", (s) => Math.round(s.rate), "figure"],
    ["stalled in 1 h", (s) => percent(stalledInHour(s)), "figure wide"],
    ["last hour", breakdown],
    ["by", (s) => s.by, "wide"],
    ["name", (s) => s.name],
  ], streams);
  if (!streams.length) return;
  const names = [...STAGES, "nothing"].flatMap((name) => [make("span", "", name), name === "nothing" ? "nothing was made" : name]);
  part("streams").append(make("div", ["waiting for", ...names], "key"));
}

/// Time left of a job that runs, from its mean pace.
function secondsLeft(job, now) {
  if (!job.weight || !job.weight[1] || job.kind === "stream" || job.state !== "running") return -1;
  const share = job.weight[0] / job.weight[1];
  return share < 0.01 ? -1 : (now - job.at) * (1 - share) / share;
}

function progress(job, now) {
  if (ENDED.includes(job.state)) return "-";
  const left = secondsLeft(job, now);
  const done = job.weight && job.weight[1] ? percent(1000 * job.weight[0] / job.weight[1]) : "-";
  return left < 0 ? done : `${done}, ${duration(left)} left`;
}

function showJobs(jobs, now) {
  const rank = (job) => ENDED.includes(job.state) ? 2 : job.cause || job.state === "held" ? 1 : 0;
  jobs.sort((a, b) => rank(a) - rank(b) || b.job - a.job);
  table("jobs", "Jobs", [
    ["job", (j) => j.job, "figure"],
    ["kind", (j) => j.kind],
    ["state", (j) => make("span", j.state, j.state.endsWith("failed") ? "bad" : j.state === "done" ? "good" : "")],
    ["progress", (j) => progress(j, now)],
    ["failed", (j) => make("span", j.failed, j.failed ? "bad" : ""), "figure"],
    ["waits for", (j) => j.cause || ""],
    ["cores", (j) => j.cores ? `${j.cores[0] / 1000} of ${j.cores[1] / 1000}` : "-", "figure wide"],
    ["by", (j) => j.by, "wide"],
    ["team", (j) => j.team || "", "wide"],
    ["name", (j) => j.name],
  ], jobs);
}

const cores = (millis) => (millis / 1000).toFixed(1);

/// Cores that a team held in the last hour, with its guarantee as a line.
function pastShares(team) {
  const past = [...team.hour, team.held], most = Math.max(...past, team.guaranteed, 1), height = 16, width = past.length - 1;
  const drawing = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const y = (millis) => height - 1 - (height - 2) * millis / most;
  const words = `${cores(Math.min(...past))} to ${cores(Math.max(...past))} cores in ${width} min`;
  const chart = drawing("svg", {viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", class: "past", role: "img", "aria-label": words});
  chart.append(drawing("polyline", {points: past.map((held, i) => `${i},${y(held)}`).join(" ")}));
  if (team.guaranteed) chart.append(drawing("line", {x1: 0, x2: width, y1: y(team.guaranteed), y2: y(team.guaranteed)}));
  return chart;
}

function showTeams(teams) {
  table("teams", "Teams", [
    ["team", (t) => t.team],
    ["cores held", (t) => cores(t.held), "figure"],
    ["wanted", (t) => cores(t.wanted), "figure"],
    ["guaranteed", (t) => t.guaranteed ? cores(t.guaranteed) : "-", "figure"],
    ["at most", (t) => t.most ? cores(t.most) : "-", "figure wide"],
    ["held in the last hour", pastShares],
  ], teams);
}

function showTotals(cluster) {
  const up = cluster.nodes.filter((node) => node.state === "up").length;
  const workers = cluster.nodes.reduce((sum, node) => sum + node.workers, 0);
  const busy = cluster.nodes.reduce((sum, node) => sum + node.busy, 0);
  const open = cluster.jobs.filter((job) => !ENDED.includes(job.state));
  const waiting = open.filter((job) => job.cause).length;
  const stalled = cluster.streams.filter((stream) => stream.stalled >= 100).length;
  const ended = cluster.jobs.filter((job) => ENDED.includes(job.state) && job.end > cluster.now - 3600);
  const failed = ended.filter((job) => job.state.endsWith("failed")).length;
  const recent = new Set([...open, ...ended].map((job) => job.job));
  const slides = cluster.slides.filter((slide) => recent.has(slide.job)).length;
  const tiles = [
    ["Is it working?", `${up} of ${cluster.nodes.length} nodes up`, up < cluster.nodes.length],
    ["Who waits?", `${stalled} of ${cluster.streams.length} streams, ${waiting} jobs`, stalled > 0],
    ["What failed?", `${failed} jobs, ${slides} slides in the last hour`, failed + slides > 0],
    ["How full is it?", `${busy} of ${workers} workers busy` + (cluster.free ? `, ${bytes(cluster.free)} free` : ""), false],
  ];
  part("totals").replaceChildren(...tiles.map(([name, text, bad]) =>
    make("div", [make("dt", name), make("dd", text, bad ? "bad" : "")])));
}

function showCluster(cluster) {
  showTotals(cluster);
  showStreams(cluster.streams);
  showJobs(cluster.jobs, cluster.now);
  showTeams(cluster.teams);
  table("slides", "Failed slides", [
    ["job", (s) => s.job, "figure"], ["slide", (s) => s.slide, "figure"], ["pseudonym", (s) => s.pseudonym || "-"], ["why", (s) => s.why, "text"],
  ], cluster.slides);
  table("failures", "Failures of the last hour", [
    ["ago", (f) => duration(cluster.now - f.at), "figure"], ["job", (f) => f.job, "figure"],
    ["what", (f) => f.text], ["why", (f) => f.why, "text"],
  ], cluster.failures);
  cluster.nodes.sort((a, b) => (a.state === "up") - (b.state === "up"));
  table("nodes", "Nodes", [
    ["node", (n) => n.node],
    ["state", (n) => make("span", n.state, n.state === "up" ? "good" : "bad")],
    ["cores", (n) => n.cores, "figure"], ["workers", (n) => n.workers, "figure"], ["busy", (n) => n.busy, "figure"],
    ["GPUs", (n) => n.gpus, "figure"], ["drained because", (n) => n.why, "text"],
  ], cluster.nodes);
}

function showState(text, bad) {
  part("state").textContent = text;
  part("state").className = bad ? "bad" : "";
}

function showOne(id) {
  for (const name of ["login", "cluster"]) part(name).hidden = name !== id;
  part("leave").hidden = id !== "cluster";
}

function showCode(code) {
  part("code").textContent = code;
  showState("Not signed in");
  showOne("login");
}

/// A new code for this browser; whoever was signed in here is not any more.
async function leave() {
  const answer = await fetch("login", {method: "POST", headers: {"X-Patchbay": "1"}});
  signedIn = false;
  showCode((await answer.json()).code);
}

/// Whether a user has let this browser in; else shows its code.
async function ask() {
  const known = await (await fetch("login")).json();
  if (known.user) return true;
  if (known.code) showCode(known.code);
  else await leave();
  return false;
}

/// Shows the cluster once; returns the seconds until the next time.
async function look() {
  signedIn = signedIn || await ask();
  if (!signedIn) return 1;
  const answer = await fetch("cluster");
  if (!answer.ok) {
    signedIn = answer.status !== 401;
    if (signedIn) showState("The scheduler is busy", true);
    return 1;
  }
  const text = await answer.text();
  const cluster = JSON.parse(text);
  showOne("cluster");
  showCluster(cluster);
  showState(`Signed in as ${cluster.viewer}, ${new Date(cluster.now * 1000).toLocaleTimeString()}`);
  return text.length > 200000 ? 10 : 2;
}

async function refresh() {
  clearTimeout(timer);
  let seconds = 2;
  try {
    seconds = document.hidden ? 2 : await look();
  } catch (error) {
    showState("The scheduler does not answer", true);
  }
  clearTimeout(timer);
  timer = setTimeout(refresh, 1000 * seconds);
}

part("leave").onclick = leave;
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
refresh();
