"use strict";
(() => {
  const D = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  // Elements are made from names and text only: nothing of a trace is ever parsed as markup.
  const el = (tag, props = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(props)) {
      if (key === "class") node.className = value;
      else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (key === "style") Object.assign(node.style, value);
      else node.setAttribute(key, value);
    }
    for (const child of children) if (child !== null && child !== undefined) node.append(child instanceof Node ? child : String(child));
    return node;
  };
  const P = { NAME: 0, INDEX: 1, ATTEMPT: 2, NODE: 3, PHASE: 4, EXIT: 5, REASON: 6, ENDED: 7, RESTARTS: 8, QUEUE: 9, RUN: 10, SPANS: 11 };
  const START = Number(BigInt(D.start_ns)) / 1e6;
  const OUTCOMES = ["Complete", "Failed", "Running", "Pending", "Suspended", "Deleted"];
  const COLOUR = { Complete: "--p5", Failed: "--p6", Running: "--p3", Pending: "--p0", Suspended: "--p1", Deleted: "--p7" };
  let css = {};
  const readColours = () => {
    const style = getComputedStyle(document.documentElement);
    css = {};
    for (const name of ["bg", "panel", "line", "text", "dim", "grid", "select", "gap", "accent", "wait"]) css[name] = style.getPropertyValue(`--${name}`).trim();
    css.phases = D.phases.map((_, code) => style.getPropertyValue(`--p${code}`).trim());
    css.outcome = Object.fromEntries(OUTCOMES.map((o) => [o, style.getPropertyValue(COLOUR[o]).trim()]));
  };
  const iso = (ms) => ms === null || ms === undefined ? "" : new Date(Math.round(START + ms)).toISOString().replace("T", " ").replace("Z", "");
  const clock = (ms, step) => {
    const text = new Date(Math.round(START + ms)).toISOString();
    return step < 1000 ? text.slice(11, 23) : step < 86400000 ? text.slice(11, 19) : text.slice(0, 10);
  };
  const seconds = (s) => s === null || s === undefined ? "" : s < 60 ? `${Math.round(s * 1000) / 1000} s` : s < 3600 ? `${Math.floor(s / 60)} min ${Math.round(s % 60)} s` : `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
  const number = (n) => n.toLocaleString("en");
  const show = (value) => value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);

  //// Overview

  const sum = (key) => D.jobs.reduce((total, job) => total + (job[key] || 0), 0);
  const divergences = D.jobs.reduce((n, job) => n + job.verdicts.length, 0);
  const overview = () => {
    $("title").textContent = D.title;
    $("subtitle").textContent = `${D.version ? `Kubernetes ${D.version} · ` : ""}${iso(0).slice(0, 19)} to ${iso(D.span_ms).slice(0, 19)} UTC (${seconds(Math.round(D.span_ms / 1000))})`;
    if (D.problems.length) {
      $("problems").hidden = false;
      $("problems").append(...D.problems.map((text) => el("p", {}, text)));
    }
    const tile = (value, label, kind = "") => el("div", { class: `tile ${kind}` }, el("b", {}, value), el("span", {}, label));
    const failed = D.jobs.filter((job) => job.outcome === "Failed").length;
    $("tiles").append(
      tile(number(D.jobs.length), D.jobs.length === 1 ? "Job" : "Jobs"),
      tile(number(failed), "failed", failed ? "bad" : ""),
      tile(number(sum("pod_count")), "pods"),
      tile(number(sum("pods_failed")), "failed pods", sum("pods_failed") ? "bad" : ""),
      tile(number(sum("retries")), "retries"),
      tile(seconds(Math.round(sum("backoff_s"))) || "0 s", "lost to back-off"),
      D.judged === null ? tile("–", "not judged") : tile(number(divergences), "divergences", divergences ? "bad" : "good"),
      tile(number(D.gaps.length), "gaps", D.gaps.length ? "bad" : ""),
    );
    const bars = (target, rows, colour) => {
      const most = Math.max(1, ...rows.map((row) => row[1]));
      for (const [label, count] of rows) target.append(el("div", { class: "bar" }, el("span", { title: label }, label), el("i", { style: { width: `${(100 * count) / most}%`, background: colour(label) } }), el("b", {}, number(count))));
      if (!rows.length) target.append(el("p", {}, "nothing"));
    };
    const tally = (values) => [...values.reduce((map, value) => map.set(value, (map.get(value) || 0) + 1), new Map())].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    bars($("outcomes"), tally(D.jobs.map((job) => job.outcome)), (label) => `var(${COLOUR[label] || "--p7"})`);
    const why = [];
    for (const job of D.jobs) {
      if (job.outcome === "Failed") why.push(`Job: ${job.reason || "no reason"}`);
      for (const pod of job.pods) if (pod[P.PHASE] === "Failed") why.push(`Pod: ${pod[P.REASON] || "no reason"}${pod[P.EXIT] === null ? "" : ` (${pod[P.EXIT]})`}`);
    }
    bars($("reasons"), tally(why).slice(0, 9), () => "var(--p6)");
  };
  const chart = () => {
    const canvas = $("running"), box = canvas.getBoundingClientRect(), scale = devicePixelRatio || 1;
    canvas.width = box.width * scale; canvas.height = box.height * scale;
    const g = canvas.getContext("2d");
    g.scale(scale, scale);
    const most = Math.max(1, ...D.running.map((point) => point[1])), w = box.width, h = box.height - 16;
    const x = (ms) => (ms / D.span_ms) * w, y = (n) => 4 + (h - 4) * (1 - n / most);
    g.beginPath(); g.moveTo(0, y(0));
    let last = 0;
    for (const [ms, n] of D.running) { g.lineTo(x(ms), y(last)); g.lineTo(x(ms), y(n)); last = n; }
    g.lineTo(w, y(last)); g.lineTo(w, y(0)); g.closePath();
    g.fillStyle = css.phases[2]; g.fill();
    g.fillStyle = css.dim; g.font = "11px system-ui, sans-serif";
    g.fillText(`most at once: ${number(most)}`, 4, 12);
    g.fillText(clock(0, 1000), 0, box.height - 3);
    g.textAlign = "right"; g.fillText(clock(D.span_ms, 1000), w, box.height - 3);
  };

  //// Filter

  const state = { from: 0, to: D.span_ms, chosen: -1, open: new Set(), wanted: new Set(OUTCOMES), text: "", namespace: "", all: D.jobs.length === 1 };
  let rows = [], shownJobs = 0;
  const haystack = D.jobs.map((job) => [job.namespace, job.job, job.cronjob, job.outcome, job.reason, job.message, job.image, ...job.pods.map((pod) => `${pod[P.NAME]} ${pod[P.REASON] || ""} ${pod[P.NODE] || ""}`), ...job.verdicts.map((v) => `${v[1]} ${v[2]}`)].join(" ").toLowerCase());
  const filter = () => {
    const words = state.text.toLowerCase().split(/\s+/).filter(Boolean), before = rows[state.chosen];
    rows = []; shownJobs = 0;
    D.jobs.forEach((job, place) => {
      if (!state.wanted.has(job.outcome) || (state.namespace && job.namespace !== state.namespace)) return;
      if (!words.every((word) => haystack[place].includes(word))) return;
      shownJobs += 1;
      rows.push({ job, pod: null });
      if (state.all || state.open.has(job)) for (const pod of job.pods) rows.push({ job, pod });
    });
    state.chosen = before ? rows.findIndex((row) => row.job === before.job && row.pod === before.pod) : -1;
    $("spacer").style.height = `${rows.length * ROW}px`;
    frame.style.height = `min(62vh, ${Math.max(150, rows.length * ROW + TOP + 14)}px)`;
    $("count").textContent = `${number(shownJobs)} of ${number(D.jobs.length)} Jobs`;
    draw();
  };
  const controls = () => {
    const spaces = [...new Set(D.jobs.map((job) => job.namespace))].sort();
    $("namespace").append(el("option", { value: "" }, `all namespaces (${spaces.length})`), ...spaces.map((name) => el("option", { value: name }, name)));
    for (const outcome of OUTCOMES) {
      const count = D.jobs.filter((job) => job.outcome === outcome).length;
      if (!count) continue;
      $("chips").append(el("button", { type: "button", "aria-pressed": "true", onclick: (event) => {
        const on = state.wanted.delete(outcome) ? false : Boolean(state.wanted.add(outcome));
        event.currentTarget.setAttribute("aria-pressed", String(on)); filter();
      } }, `${outcome} ${number(count)}`));
    }
    let timer = 0;
    $("search").addEventListener("input", (event) => { clearTimeout(timer); timer = setTimeout(() => { state.text = event.target.value; filter(); }, 80); });
    $("namespace").addEventListener("change", (event) => { state.namespace = event.target.value; filter(); });
    $("open-all").checked = state.all;
    $("open-all").addEventListener("change", (event) => { state.all = event.target.checked; filter(); });
    $("keys").append(...D.phases.map((phase, code) => el("span", {}, el("i", { style: { background: `var(--p${code})` } }), phase)), el("span", {}, "│ controller write"), el("span", { class: "bad" }, "◆ divergence"), el("span", {}, "▒ gap: not seen"));
  };

  //// Timeline

  const ROW = 20, TOP = 26, NAMES = 250;
  const frame = $("frame"), gantt = $("gantt"), scroller = $("scroller"), tip = $("tip");
  let width = 0, height = 0, queued = false;
  const left = () => Math.min(NAMES, width * 0.35);
  const x = (ms) => left() + ((ms - state.from) / (state.to - state.from)) * (width - left() - 12);
  const at = (px) => state.from + ((px - left()) / (width - left() - 12)) * (state.to - state.from);
  const draw = () => { if (!queued) { queued = true; requestAnimationFrame(paint); } };
  const paint = () => {
    queued = false;
    const scale = devicePixelRatio || 1, box = frame.getBoundingClientRect();
    width = box.width; height = box.height;
    if (gantt.width !== Math.round(width * scale) || gantt.height !== Math.round(height * scale)) { gantt.width = Math.round(width * scale); gantt.height = Math.round(height * scale); }
    const g = gantt.getContext("2d");
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.fillStyle = css.panel; g.fillRect(0, 0, width, height);
    g.font = "12px system-ui, sans-serif"; g.textBaseline = "middle";
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW)), last = Math.min(rows.length, Math.ceil((scroller.scrollTop + height - TOP) / ROW));
    g.save(); g.beginPath(); g.rect(left(), 0, width - left(), height); g.clip();
    axis(g);
    for (const [stream, since, until] of D.gaps) {
      const a = x(since), b = until === null ? width : x(until);
      g.fillStyle = css.gap; g.fillRect(a, TOP, Math.max(2, b - a), height); void stream;
    }
    g.restore();
    for (let place = first; place < last; place += 1) row(g, rows[place], TOP + place * ROW - scroller.scrollTop, place === state.chosen);
    g.fillStyle = css.panel; g.fillRect(0, 0, left(), TOP);
    g.strokeStyle = css.line; g.beginPath(); g.moveTo(left() - 0.5, 0); g.lineTo(left() - 0.5, height); g.moveTo(0, TOP - 0.5); g.lineTo(width, TOP - 0.5); g.stroke();
    if (!rows.length) { g.fillStyle = css.dim; g.fillText("Nothing fits the filter.", 12, TOP + 20); }
  };
  const axis = (g) => {
    const span = state.to - state.from, steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5, 432e5, 864e5, 6048e5];
    const step = steps.find((ms) => span / ms <= (width - left()) / 95) || 2592e6;
    const first = Math.ceil((START + state.from) / step) * step - START;
    for (let ms = first; ms <= state.to; ms += step) {
      g.fillStyle = css.grid; g.fillRect(x(ms), TOP, 1, height);
      g.fillStyle = css.dim; g.fillText(clock(ms, step), x(ms) + 3, TOP / 2);
    }
  };
  const row = (g, { job, pod }, y, chosen) => {
    if (chosen) { g.fillStyle = css.select; g.fillRect(0, y, width, ROW); }
    g.save(); g.beginPath(); g.rect(0, Math.max(TOP, y), left() - 6, ROW); g.clip();
    g.fillStyle = pod ? css.dim : css.text;
    const opened = state.all || state.open.has(job);
    g.fillText(pod ? `      ${pod[P.INDEX] === null ? "" : `[${pod[P.INDEX]}] `}${pod[P.NAME]}` : `${opened ? "▾" : "▸"} ${job.namespace}/${job.job}`, 8, y + ROW / 2);
    g.restore();
    g.save(); g.beginPath(); g.rect(left(), Math.max(TOP, y), width - left(), ROW); g.clip();
    if (pod) spans(g, pod, y + 4, ROW - 8); else bar(g, job, y);
    g.restore();
  };
  const spans = (g, pod, y, h) => {
    for (const [code, since, until] of pod[P.SPANS]) {
      if (since === null) continue;
      const a = x(since), ended = code === 5 || code === 6;
      const b = until === null ? (ended ? a + 5 : x(D.span_ms)) : ended ? Math.min(x(until), a + 5) : x(until);
      if (b < left() || a > width) continue;
      g.fillStyle = css.phases[code]; g.fillRect(a, y, Math.max(ended ? 5 : 1, b - a), h);
    }
  };
  const bar = (g, job, y) => {
    const end = job.finished ?? job.gone ?? D.span_ms, a = x(job.created ?? 0), b = x(Math.max(end, job.created ?? 0));
    g.fillStyle = css.grid; g.fillRect(a, y + 3, Math.max(3, b - a), ROW - 6);
    if (job.pods.length <= 400) for (const pod of job.pods) spans(g, pod, y + 6, ROW - 12);
    g.fillStyle = css.outcome[job.outcome] || css.dim; g.fillRect(b - 1, y + 3, 4, ROW - 6);
    g.fillStyle = css.text;
    for (const action of job.actions) { const px = x(action[0]); if (px >= left() && px <= width) g.fillRect(px, y + 3, 1, 4); }
    g.fillStyle = css.phases[6];
    for (const verdict of job.verdicts) { const px = x(verdict[0]); g.beginPath(); g.moveTo(px, y + 3); g.lineTo(px + 6, y + ROW / 2); g.lineTo(px, y + ROW - 3); g.lineTo(px - 6, y + ROW / 2); g.fill(); }
  };
  const zoom = (factor, centre) => {
    const span = Math.min(D.span_ms, Math.max(1, (state.to - state.from) * factor)), share = (centre - state.from) / (state.to - state.from);
    state.from = centre - span * share; state.to = state.from + span; clamp();
  };
  const move = (by) => { state.from += by; state.to += by; clamp(); };
  const clamp = () => {
    const span = Math.min(state.to - state.from, D.span_ms);
    if (state.from < 0) state.from = 0;
    if (state.from + span > D.span_ms) state.from = D.span_ms - span;
    state.to = state.from + span; draw();
  };
  const rowAt = (event) => {
    const box = frame.getBoundingClientRect(), y = event.clientY - box.top - TOP;
    return y < 0 ? -1 : Math.floor((y + scroller.scrollTop) / ROW);
  };
  const hover = (event) => {
    const place = rowAt(event), entry = rows[place], box = frame.getBoundingClientRect(), px = event.clientX - box.left;
    if (!entry) { tip.hidden = true; return; }
    tip.textContent = describe(entry, px >= left() ? at(px) : null);
    tip.hidden = false;
    const py = event.clientY - box.top;
    tip.style.left = `${Math.max(0, Math.min(px + 14, width - tip.offsetWidth - 6))}px`;
    tip.style.top = `${py + 16 + tip.offsetHeight > height ? Math.max(0, py - tip.offsetHeight - 10) : py + 16}px`;
  };
  const describe = ({ job, pod }, ms) => {
    const lines = [];
    if (pod) {
      lines.push(pod[P.NAME], `${pod[P.PHASE] || "no phase"}${pod[P.EXIT] === null ? "" : `, exit code ${pod[P.EXIT]}`}${pod[P.REASON] ? `, ${pod[P.REASON]}` : ""}${pod[P.ENDED] ? `, ended by ${pod[P.ENDED]}` : ""}`, `attempt ${pod[P.ATTEMPT]}${pod[P.NODE] ? ` on ${pod[P.NODE]}` : ""}`);
      const span = ms === null ? null : pod[P.SPANS].find(([, since, until]) => since <= ms && (until === null || ms < until));
      if (span) lines.push(`${D.phases[span[0]]} since ${iso(span[1])}${span[2] === null ? "" : ` for ${seconds((span[2] - span[1]) / 1000)}`}`);
    } else {
      lines.push(`${job.namespace}/${job.job}`, `${job.outcome}${job.reason ? `: ${job.reason}` : ""}, ${job.pod_count} pods, ${job.pods_failed} failed, ${job.retries} retries`);
      if (job.duration_s !== null) lines.push(`took ${seconds(job.duration_s)}${job.backoff_s ? `, ${seconds(Math.round(job.backoff_s))} of it in back-off` : ""}`);
      if (ms !== null) {
        const reach = ((state.to - state.from) / (width - left())) * 4;
        for (const verdict of job.verdicts) if (Math.abs(verdict[0] - ms) < reach * 2) lines.push(`◆ ${verdict[2]} ${verdict[1]}: ${verdict[4]}`);
        const near = job.actions.filter((action) => Math.abs(action[0] - ms) < reach);
        for (const action of near.slice(0, 8)) lines.push(`${clock(action[0], 1)} ${action[1]} ${action[2]}${action[3] ? ` by ${action[3]}` : ""}`);
        if (near.length > 8) lines.push(`… ${near.length - 8} more writes here`);
      }
    }
    if (ms !== null) {
      for (const [stream, since, until, reason] of D.gaps) if (since <= ms && (until === null || ms <= until)) lines.push(`gap in ${stream}: ${reason}`);
      lines.push(iso(ms));
    }
    return lines.join("\n");
  };
  const choose = (place) => {
    state.chosen = Math.max(0, Math.min(rows.length - 1, place));
    const top = state.chosen * ROW, view = scroller.clientHeight;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    if (top + ROW > scroller.scrollTop + view) scroller.scrollTop = top + ROW - view;
    draw();
  };
  const toggle = (job) => { if (!state.open.delete(job)) state.open.add(job); filter(); };

  //// Details of one Job

  const table = (heads, lines, kind = "") => el("div", { class: "scroll" }, el("table", { class: kind }, el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", {}, head)))), el("tbody", {}, ...lines.map((cells) => el("tr", {}, ...cells.map((cell, place) => el("td", { class: place === 0 ? "n" : "" }, cell instanceof Node ? cell : show(cell))))))));
  const open = (job) => {
    const box = $("details");
    box.replaceChildren(el("button", { type: "button", class: "close", onclick: close }, "Close"), el("h2", {}, `${job.namespace}/${job.job}`));
    const facts = { outcome: `${job.outcome}${job.reason ? ` (${job.reason})` : ""}`, message: job.message, CronJob: job.cronjob, created: iso(job.created), started: iso(job.started), finished: iso(job.finished), "waited for its first pod": seconds(job.queue_s), took: seconds(job.duration_s), "lost to back-off": job.backoff_s ? seconds(job.backoff_s) : "", spec: `parallelism ${show(job.parallelism)}, completions ${show(job.completions) || "none"}, backoffLimit ${show(job.backoff_limit)}`, image: job.image, status: `${job.succeeded} succeeded, ${job.failed} failed` };
    const list = el("dl");
    for (const [name, value] of Object.entries(facts)) if (value) list.append(el("dt", {}, name), el("dd", {}, value));
    box.append(list);
    if (job.verdicts.length) box.append(el("h3", { class: "bad" }, "Divergences from the rules"), ...job.verdicts.map(([ms, action, verdict, subject, why, fields]) => el("div", { class: "divergence" }, el("b", {}, `${verdict} ${action}`), ` ${subject} at ${iso(ms)}`, el("div", {}, why), fields.length ? table(["field", "expected", "observed"], fields) : null)));
    box.append(el("h3", {}, `Pods (${job.pods.length})`), table(["pod", "index", "attempt", "phase", "exit code", "reason", "ended by", "queue", "run", "node"], job.pods.map((pod) => [pod[P.NAME], pod[P.INDEX], pod[P.ATTEMPT], pod[P.PHASE], pod[P.EXIT], pod[P.REASON], pod[P.ENDED], seconds(pod[P.QUEUE]), seconds(pod[P.RUN]), pod[P.NODE]])));
    const revisions = el("div");
    box.append(el("h3", {}, `Revisions (${job.history.length}): choose two to see what differs between them`), revisions);
    history(job, revisions);
    box.append(el("h3", {}, `Writes (${job.actions.length})`), table(["time", "what", "object", "by", "revision"], job.actions.map(([ms, action, object, actor, rv]) => [iso(ms), action, object, actor, rv])));
    if (job.events.length) box.append(el("h3", {}, `Events (${job.events.length})`), table(["time", "type", "reason", "message", "count"], job.events.map(([ms, type, reason, message, count]) => [iso(ms), type, reason, message, count])));
    box.hidden = false;
    box.scrollIntoView({ block: "nearest", behavior: "auto" });
  };
  const history = (job, target) => {
    const result = el("div");
    const pick = (name, value) => el("select", { "aria-label": name, onchange: () => compare() }, ...job.history.map(([ms, rv], place) => { const option = el("option", { value: place }, `${rv} · ${iso(ms).slice(11)}`); option.selected = place === value; return option; }));
    const from = pick("from revision", Math.max(0, job.history.length - 2)), to = pick("to revision", job.history.length - 1);
    const compare = () => {
      const a = Math.min(Number(from.value), Number(to.value)), b = Math.max(Number(from.value), Number(to.value)), found = new Map();
      for (let place = a + 1; place <= b; place += 1) for (const [path, before, now] of job.history[place][4]) found.set(path, [found.has(path) ? found.get(path)[0] : before, now]);
      const lines = [...found].filter(([, [before, now]]) => show(before) !== show(now)).map(([path, [before, now]]) => [path, show(before), show(now)]);
      result.replaceChildren(lines.length ? table(["field", "before", "after"], lines, "diff") : el("p", {}, "Nothing differs but what the server keeps."));
    };
    target.append(table(["time", "revision", "what changed", "by"], job.history.map(([ms, rv, changes, writer]) => [iso(ms), rv, (changes || []).join(", "), writer])));
    if (job.history.length > 1) { target.append(el("p", {}, "from ", from, " to ", to), result); compare(); }
  };
  const close = () => { $("details").hidden = true; frame.focus(); };
  const ticks = () => {
    if (!D.ticks.length) return;
    const box = $("ticks");
    box.hidden = false;
    box.append(el("h2", {}, `CronJob ticks (${number(D.ticks.length)})`), table(["due", "CronJob", "outcome", "rule", "Job", "delay", "why"], D.ticks.slice(0, 3000).map(([ns, name, due, outcome, policy, job, delay, why]) => [iso(due), `${ns}/${name}`, outcome, policy, job, seconds(delay), why])));
  };

  //// Hands

  const hands = () => {
    scroller.addEventListener("scroll", () => { tip.hidden = true; draw(); });
    let drag = null, moved = false;
    scroller.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, from: state.from, to: state.to }; moved = false; });
    addEventListener("pointerup", () => { drag = null; });
    scroller.addEventListener("pointermove", (event) => {
      if (!drag) { hover(event); return; }
      const by = event.clientX - drag.x;
      if (Math.abs(by) > 3) moved = true;
      const ms = (-by / (width - left())) * (drag.to - drag.from);
      state.from = drag.from + ms; state.to = drag.to + ms; tip.hidden = true; clamp();
    });
    scroller.addEventListener("pointerleave", () => { tip.hidden = true; });
    scroller.addEventListener("click", (event) => {
      const entry = rows[rowAt(event)];
      if (moved || !entry) return;
      const px = event.clientX - frame.getBoundingClientRect().left;
      choose(rowAt(event));
      if (px < 24 && !entry.pod) toggle(entry.job); else open(entry.job);
    });
    scroller.addEventListener("dblclick", (event) => { const entry = rows[rowAt(event)]; if (entry) fit(entry.job); });
    scroller.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) { if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) { event.preventDefault(); move((event.deltaX / width) * (state.to - state.from)); } return; }
      event.preventDefault();
      zoom(Math.exp(event.deltaY * 0.002), at(event.clientX - frame.getBoundingClientRect().left));
    }, { passive: false });
    addEventListener("resize", () => { draw(); chart(); });
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
      if (event.key === "Escape") { if (typing) frame.focus(); else close(); return; }
      if (typing) return;
      const middle = (state.from + state.to) / 2, span = state.to - state.from, entry = rows[state.chosen];
      const page = Math.max(1, Math.floor(scroller.clientHeight / ROW) - 1);
      const keys = {
        "/": () => $("search").focus(), t: theme, "+": () => zoom(0.6, middle), "=": () => zoom(0.6, middle), "-": () => zoom(1 / 0.6, middle), 0: () => { state.from = 0; state.to = D.span_ms; draw(); },
        ArrowLeft: () => move(-span / 8), ArrowRight: () => move(span / 8), ArrowDown: () => choose(state.chosen + 1), ArrowUp: () => choose(state.chosen - 1), PageDown: () => choose(state.chosen + page), PageUp: () => choose(state.chosen - page), Home: () => choose(0), End: () => choose(rows.length - 1),
        " ": () => entry && toggle(entry.job), Enter: () => entry && open(entry.job), f: () => entry && fit(entry.job),
      };
      const does = keys[event.key];
      if (!does || (event.target.tagName === "BUTTON" && (event.key === "Enter" || event.key === " "))) return;
      event.preventDefault(); does();
    });
    $("theme").addEventListener("click", theme);
    addEventListener("beforeprint", paint);
  };
  const fit = (job) => {
    const from = job.created ?? 0, to = job.finished ?? job.gone ?? D.span_ms, pad = Math.max(50, (to - from) * 0.05);
    state.from = Math.max(0, from - pad); state.to = Math.min(D.span_ms, to + pad); clamp();
  };
  const theme = () => {
    document.documentElement.dataset.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    readColours(); draw(); chart();
  };

  document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  readColours(); overview(); controls(); hands(); filter(); chart(); ticks();
  if (D.jobs.length === 1) { fit(D.jobs[0]); open(D.jobs[0]); scrollTo(0, 0); }
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
})();
