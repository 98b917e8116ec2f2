"use strict";
(async () => {
  // What is large comes compressed, and the details of Jobs in parts; nothing is fetched for it.
  const held = async (node) => {
    if (node.type === "application/json") return node.textContent;
    const text = atob(node.textContent), bytes = new Uint8Array(text.length);
    for (let place = 0; place < text.length; place += 1) bytes[place] = text.charCodeAt(place);
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  const D = JSON.parse(await held(document.getElementById("data")));
  // By uid, which may be any text: also the name of what every object has.
  if (D.pod_diffs) Object.setPrototypeOf(D.pod_diffs, null);
  const $ = (id) => document.getElementById(id);
  // Elements are made from names and text only: nothing of a trace is ever parsed as markup.
  const el = (tag, props = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(props)) {
      if (value === null || value === undefined) continue;
      if (key === "class") node.className = value;
      else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (key === "style") Object.assign(node.style, value);
      else node.setAttribute(key, value);
    }
    for (const child of children) if (child !== null && child !== undefined) node.append(child instanceof Node ? child : String(child));
    return node;
  };
  const P = { UID: 0, NAME: 1, INDEX: 2, ATTEMPT: 3, NODE: 4, PHASE: 5, EXIT: 6, REASON: 7, ENDED: 8, RESTARTS: 9, QUEUE: 10, RUN: 11, SPANS: 12 };
  const T = { DUE: 0, OUTCOME: 1, POLICY: 2, JOB: 3, STARTED: 4, WHY: 5 };
  const START = Number(BigInt(D.start_ns)) / 1e6;
  const OUTCOMES = ["Complete", "Failed", "Running", "Pending", "Suspended", "Deleted"];
  // A colour means one thing: waits, runs, is being deleted or was, is done, failed; --warn alone warns.
  const COLOUR = { Complete: "--p5", Failed: "--p6", Running: "--p3", Pending: "--p0", Suspended: "--p0", Deleted: "--p4" };
  // What became of a due time, by a sign of its own: colours alone tell too little, and the signs of
  // failed Jobs and of warnings mean these.
  const SIGN = { started: "●", missed: "⊗", skipped: "⊘", suspended: "○", pending: "…", unknown: "?" };
  const TICKS = { started: "--p5", missed: "--p6", skipped: "--dim", suspended: "--dim", pending: "--dim", unknown: "--dim" };
  let css = {};
  const readColours = () => {
    const style = getComputedStyle(document.documentElement), read = (name) => style.getPropertyValue(name).trim();
    css = {};
    for (const name of ["bg", "panel", "line", "text", "dim", "grid", "select", "gap", "accent", "bad"]) css[name] = read(`--${name}`);
    css.phases = D.phases.map((_, code) => read(`--p${code}`));
    css.outcome = Object.fromEntries(OUTCOMES.map((o) => [o, read(COLOUR[o])]));
    css.tick = Object.fromEntries(Object.entries(TICKS).map(([outcome, name]) => [outcome, read(name)]));
    css.severity = { error: css.bad, warning: read("--warn"), info: css.dim };
    css.hatch = pattern(css.text);
  };
  // For times that nobody led: a pattern, as no colour is left for them.
  const pattern = (colour) => {
    const tile = document.createElement("canvas");
    tile.width = 8; tile.height = 8;
    const g = tile.getContext("2d");
    g.strokeStyle = colour; g.lineWidth = 1; g.globalAlpha = 0.5;
    for (const shift of [-8, 0, 8]) { g.beginPath(); g.moveTo(shift, 8); g.lineTo(shift + 8, 0); g.stroke(); }
    return g.createPattern(tile, "repeat");
  };

  //// Times: one switch between UTC and the reader's own

  let local = false;
  const utc = (ms) => new Date(Math.round(START + ms)).toISOString().replace("T", " ").replace("Z", "");
  const pad = (n, width = 2) => String(n).padStart(width, "0");
  const own = (ms) => {
    const d = new Date(Math.round(START + ms));
    return `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())} ${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}.${pad(d.getMilliseconds(), 3)}`;
  };
  const iso = (ms) => ms === null || ms === undefined ? "" : local ? own(ms) : utc(ms);
  const both = (ms) => `${utc(ms)} UTC · ${own(ms).slice(11, 19)} local`;
  const clock = (ms, step) => {
    const text = iso(ms);
    return step < 1000 ? text.slice(11, 23) : step < 60000 ? text.slice(11, 19) : step < 86400000 ? text.slice(11, 16) : text.slice(0, 10);
  };
  const rfc = (ms) => `${utc(ms).replace(" ", "T")}Z`;
  const time = (ms) => el("time", { datetime: ms === null ? null : rfc(ms), title: ms === null ? null : both(ms) }, iso(ms));
  const seconds = (s) => s === null || s === undefined ? "" : s < 60 ? `${Math.round(s * 1000) / 1000} s` : s < 3600 ? `${Math.floor(s / 60)} min ${Math.round(s % 60)} s` : `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
  const number = (n) => n.toLocaleString("en");
  const plural = (n, noun) => n === 1 ? noun : noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`;
  const count = (n, noun) => `${number(n)} ${plural(n, noun)}`;
  const show = (value) => value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
  const tally = (values) => [...values.reduce((map, value) => map.set(value, (map.get(value) || 0) + 1), new Map())].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));

  //// What belongs together

  const keyOf = (job) => `${job.namespace}/${job.job}`;
  const byUid = new Map(D.jobs.map((job) => [job.job_uid, job]));
  const byKey = new Map();
  for (const job of D.jobs) if (!byKey.has(keyOf(job))) byKey.set(keyOf(job), job);
  const cronByKey = new Map(D.crons.map((cron) => [`${cron.namespace}/${cron.name}`, cron]));
  for (const thing of [...D.jobs, ...D.crons]) thing.findings = [];
  D.findings.forEach((finding) => {
    finding.jobs = new Set();
    for (const [kind, namespace, name, uid] of finding.cases) {
      const thing = kind === "Job" ? byUid.get(uid) || byKey.get(`${namespace}/${name}`) : kind === "CronJob" ? cronByKey.get(`${namespace}/${name}`) : null;
      if (!thing) continue;
      finding.jobs.add(thing);
      if (!thing.findings.includes(finding)) thing.findings.push(finding);
    }
  });
  // Pods by node, each with its Job.
  const nodes = new Map();
  for (const job of D.jobs) for (const pod of job.pods) if (pod[P.NODE]) { if (!nodes.has(pod[P.NODE])) nodes.set(pod[P.NODE], []); nodes.get(pod[P.NODE]).push(pod); }
  // What the worst finding is about comes first: findings stand in the order of what they cost.
  const rank = new Map(D.findings.map((finding, place) => [finding, finding.severity === "info" ? D.findings.length : place]));
  const trouble = (thing) => thing.findings.reduce((worst, finding) => Math.min(worst, rank.get(finding)), thing.verdicts && thing.verdicts.length ? D.findings.length - 1 : D.findings.length + 1);

  //// Commands to copy

  const quoted = (text) => /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
  const command = (...words) => {
    const text = ["tracekit", ...words].map(quoted).join(" ");
    const code = el("code", {}, text);
    return el("span", { class: "command" }, code, el("button", { type: "button", title: "Copy", onclick: (event) => copy(text, code, event.currentTarget) }, "copy"));
  };
  const copy = (text, node, button) => {
    const done = () => { button.textContent = "copied"; setTimeout(() => { button.textContent = "copy"; }, 1200); };
    const select = () => { getSelection().selectAllChildren(node); document.execCommand("copy"); done(); };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, select); else select();
  };
  // On paper a word is broken only where it is longer than what the API calls things.
  const wordy = (cell) => /\S{17}/.test(cell instanceof Node ? cell.textContent : show(cell)) ? "" : null;
  const table = (heads, lines, kind = "") => el("div", { class: "scroll" }, el("table", { class: kind }, el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", {}, head)))), el("tbody", {}, ...lines.map((cells) => el("tr", {}, ...cells.map((cell, place) => el("td", { class: place === 0 ? "n" : "", "data-head": heads[place], "data-long": wordy(cell), title: cell instanceof Node ? null : show(cell) }, cell instanceof Node ? cell : show(cell))))))));

