  //// Timeline

  const ROW = 20, TOP = 26, NAMES = 270, FONT = "12px system-ui, sans-serif";
  const frame = $("frame"), gantt = $("gantt"), scroller = $("scroller"), tip = $("tip");
  let width = 0, height = 0, queued = false;
  const left = () => Math.round(Math.min(NAMES, width * 0.4));
  const x = (ms) => left() + ((ms - state.from) / (state.to - state.from)) * (width - left() - 12);
  const at = (px) => state.from + ((px - left()) / (width - left() - 12)) * (state.to - state.from);
  const draw = () => { if (!queued) { queued = true; requestAnimationFrame(paint); } };
  const sized = (canvas, box) => {
    const scale = devicePixelRatio || 1, w = Math.round(box.width * scale), h = Math.round(box.height * scale);
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
    const g = canvas.getContext("2d");
    g.setTransform(scale, 0, 0, scale, 0, 0);
    return g;
  };
  // The first of some texts that has room, else the last, cut in its middle.
  // The largest size of a text that has room: a name may have any length, and each frame draws it.
  const sizeIn = (g, kept, low, high, room) => {
    while (low < high) { const middle = (low + high + 1) >> 1; if (g.measureText(kept(middle)).width <= room) low = middle; else high = middle - 1; }
    return low;
  };
  const fitted = (g, texts, room) => {
    for (const one of texts) if (g.measureText(one).width <= room) return one;
    const text = texts[texts.length - 1];
    // The end stays: names that are made up differ in it.
    const kept = (size) => `${text.slice(0, Math.ceil(size * 0.4))}…${text.slice(text.length - Math.floor(size * 0.6))}`;
    // What is left of a word of one to three letters goes, too.
    return kept(sizeIn(g, kept, 0, text.length - 1, room)).replace(/(.)-[^-/ ]{1,2}…/, "$1…").replace(/…[^-/ ]{1,3}-/, "…-");
  };
  // Two names in sight that would look the same are cut where they differ.
  const distinct = (g, entries, room) => {
    const drawn = entries.map((entry) => fitted(g, label(entry), room)), same = new Map();
    drawn.forEach((text, place) => { if (!same.has(text)) same.set(text, []); same.get(text).push(place); });
    for (const places of same.values()) {
      const whole = places.map((place) => label(entries[place]).at(-1));
      if (new Set(whole).size < 2) continue;
      let first = 0;
      while (whole.every((text) => text[first] === whole[0][first])) first += 1;
      const from = Math.max(3, first - 2);
      places.forEach((place, n) => {
        const head = `${whole[n].slice(0, 2)}…`, tail = whole[n].slice(from, from + 253);
        drawn[place] = g.measureText(head + tail).width <= room ? head + tail : head + begun(g, tail, room - g.measureText(head).width);
      });
    }
    return drawn;
  };
  const begun = (g, text, room) => {
    const kept = (size) => `${text.slice(0, size)}…`;
    return kept(sizeIn(g, kept, 1, Math.min(text.length, 253), room));
  };
  const paint = () => {
    queued = false;
    const box = frame.getBoundingClientRect();
    width = box.width; height = box.height;
    const g = sized(gantt, box);
    g.fillStyle = css.panel; g.fillRect(0, 0, width, height);
    g.font = FONT; g.textBaseline = "middle";
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW)), last = Math.min(rows.length, Math.ceil((scroller.scrollTop + height - TOP) / ROW));
    g.save(); g.beginPath(); g.rect(left(), 0, width - left(), height); g.clip();
    axis(g);
    bands(g, TOP, height);
    g.restore();
    const names = distinct(g, rows.slice(first, last), left() - 16);
    for (let place = first; place < last; place += 1) row(g, rows[place], names[place - first], TOP + place * ROW - scroller.scrollTop, place === state.chosen);
    g.fillStyle = css.panel; g.fillRect(0, 0, left(), TOP);
    const whole = state.from <= 0 && state.to >= D.span_ms, zoneName = local ? "local time" : "UTC";
    g.fillStyle = css.dim; g.fillText(fitted(g, [`${zoneName}, ${whole ? "the whole record" : "a part of it (0 shows all)"}`, `${zoneName}, ${whole ? "all" : "a part"}`], left() - 16), 8, TOP / 2);
    g.strokeStyle = css.line; g.beginPath(); g.moveTo(left() - 0.5, 0); g.lineTo(left() - 0.5, height); g.moveTo(0, TOP - 0.5); g.lineTo(width, TOP - 0.5); g.stroke();
    if (!rows.length) { g.fillStyle = css.dim; g.fillText("Nothing fits the filter.", 12, TOP + 20); }
    minimap();
    curves();
  };
  const bands = (g, top, bottom) => {
    const span = (from, until, colour) => { const a = x(from ?? 0), b = until === null ? width : x(until); g.fillStyle = colour; g.fillRect(a, top, Math.max(2, b - a), bottom - top); };
    for (const [from, until] of D.pauses) span(from, until, css.hatch);
    for (const [, from, until] of D.gaps) span(from, until, css.gap);
    if (state.band) span(state.band[0], state.band[1], css.select);
    if (state.range) span(state.range[0], state.range[1], css.select);
  };
  const axis = (g) => {
    const span = state.to - state.from, steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5, 432e5, 864e5, 6048e5];
    const wide = (ms) => g.measureText(clock(0, ms)).width + 12;
    const step = steps.find((ms) => (span / ms) * wide(ms) <= width - left()) || 2592e6;
    const first = Math.ceil((START + state.from) / step) * step - START;
    let free = left();
    for (let ms = first; ms <= state.to; ms += step) {
      g.fillStyle = css.grid; g.fillRect(x(ms), TOP, 1, height);
      // The last one stands before its line where there is no room behind it.
      const text = clock(ms, step), room = g.measureText(text).width, px = x(ms) + 3 + room > width ? x(ms) - 3 - room : x(ms) + 3;
      if (px < free) continue;
      g.fillStyle = css.dim; g.fillText(text, px, TOP / 2); free = px + room + 4;
    }
  };
  const LABELS = { leader: () => ["kube-controller-manager", "who led"], edits: () => ["users' edits"], warnings: () => ["Events: warnings"], nodes: () => [`${state.nodes ? "▾" : "▸"} pods on ${number(nodes.size)} nodes`] };
  const label = (entry) => {
    const { kind, job, pod, cron, name, jobs, opened } = entry;
    // The whole first; where that has no room, without what stands above or is the same for many.
    if (LABELS[kind]) return LABELS[kind]();
    if (kind === "node") return [`      ${name} (${number(nodes.get(name).length)})`];
    if (kind === "cron") return [`     ${cron.namespace}/${cron.name}`, `     …/${cron.name}`];
    if (kind === "group") return [`${state.shut.has(name) ? "▸" : "▾"} ${name} (${number(jobs.length)})`];
    if (kind === "quiet") return [`${opened ? "▾" : "▸"} ${number(jobs.length)} that completed`];
    if (kind === "pod") {
      const index = pod[P.INDEX] === null ? "" : `[${pod[P.INDEX]}] `, own = pod[P.NAME].startsWith(`${job.job}-`) ? [`      ${index}…${pod[P.NAME].slice(job.job.length)}`] : [];
      return [`      ${index}${pod[P.NAME]}`, ...own];
    }
    const sign = state.all || state.open.has(job) ? "▾" : "▸";
    return [`${sign} ${job.namespace}/${job.job}`, `${sign} …/${job.job}`];
  };
  const row = (g, entry, name, y, chosen) => {
    const { kind, job, pod, cron } = entry, thing = job && !pod ? job : cron;
    if (chosen) { g.fillStyle = css.select; g.fillRect(0, y, width, ROW); }
    else if (kind === "group") { g.fillStyle = css.grid; g.fillRect(0, y, width, ROW); }
    g.save(); g.beginPath(); g.rect(0, Math.max(TOP, y), left() - 6, ROW); g.clip();
    const worst = thing ? thing.findings.find((finding) => finding.severity !== "info") : null;
    if (worst) { g.fillStyle = css.severity[worst.severity]; severity(g, worst.severity, 3.5, y + ROW / 2); }
    g.fillStyle = pod || LABELS[kind] || kind === "quiet" ? css.dim : css.text;
    g.fillText(name, 8, y + ROW / 2);
    if (kind === "cron") { g.strokeStyle = css.dim; g.beginPath(); g.arc(13, y + ROW / 2, 4.5, 0, 7); g.moveTo(13, y + ROW / 2 - 3); g.lineTo(13, y + ROW / 2); g.lineTo(15.5, y + ROW / 2); g.stroke(); }
    g.restore();
    g.save(); g.beginPath(); g.rect(left(), Math.max(TOP, y), width - left(), ROW); g.clip();
    if (pod) spans(g, pod, y + 4, ROW - 8);
    else if (kind === "job") bar(g, job, y);
    else if (kind === "cron") ticks(g, cron, y);
    else if (kind === "quiet" || kind === "group") crowd(g, entry.jobs, y);
    else if (kind === "nodes") for (const pods of nodes.values()) failures(g, pods, y);
    else if (kind === "node") { for (const pod of nodes.get(entry.name)) spans(g, pod, y + 5, ROW - 10); failures(g, nodes.get(entry.name), y); }
    else if (kind === "leader") leaders(g, y);
    else if (kind === "edits") marks(D.edits, (px) => { g.fillStyle = css.text; edit(g, px, y + 6); });
    else marks(D.warnings, (px) => { g.fillStyle = css.severity.warning; severity(g, "warning", px, y + ROW / 2); });
    g.restore();
  };
  // A colour never stands alone: an error is a square, a warning a triangle, an edit one that points down.
  const severity = (g, kind, px, middle) => {
    if (kind === "error") { g.fillRect(px - 3, middle - 3, 6, 6); return; }
    g.beginPath(); g.moveTo(px, middle - 4); g.lineTo(px + 3.5, middle + 3); g.lineTo(px - 3.5, middle + 3); g.fill();
  };
  const edit = (g, px, top) => { g.beginPath(); g.moveTo(px - 3, top); g.lineTo(px + 3, top); g.lineTo(px, top + 7); g.fill(); };
  const cross = (g, px, middle) => {
    g.strokeStyle = css.phases[6]; g.lineWidth = 2;
    g.beginPath(); g.moveTo(px - 4, middle - 4); g.lineTo(px + 4, middle + 4); g.moveTo(px + 4, middle - 4); g.lineTo(px - 4, middle + 4); g.stroke();
    g.lineWidth = 1;
  };
  // Where pods failed: on one node, or on all.
  const failures = (g, pods, y) => {
    g.fillStyle = css.phases[6];
    for (const pod of pods) for (const [code, since] of pod[P.SPANS]) if (code === 6 && since !== null) g.fillRect(Math.round(x(since)), y + 3, 2, ROW - 6);
  };
  const leaders = (g, y) => {
    D.leaders.forEach(([from, until], place) => {
      g.fillStyle = css.dim; g.fillRect(x(from ?? 0), y + ROW / 2 - 1, Math.max(2, x(until ?? D.span_ms) - x(from ?? 0)), 2);
      if (place) { g.fillStyle = css.text; g.fillRect(x(from ?? 0) - 1, y + 3, 3, ROW - 6); }
    });
    for (const [from, until] of D.pauses) { const a = x(from ?? 0), b = Math.max(a + 2, x(until)); g.fillStyle = css.panel; g.fillRect(a, y + 3, b - a, ROW - 6); g.fillStyle = css.hatch; g.fillRect(a, y + 3, b - a, ROW - 6); g.strokeStyle = css.text; g.strokeRect(a + 0.5, y + 3.5, b - a - 1, ROW - 7); }
  };
  const marks = (list, drawn) => {
    let last = -9;
    for (const [ms] of list) { const px = Math.round(x(ms)); if (px - last >= 2 && px >= left() && px <= width) { drawn(px); last = px; } }
  };
  const crowd = (g, jobs, y) => {
    g.globalAlpha = Math.max(0.12, Math.min(0.8, 4 / Math.max(1, jobs.length)));
    for (const job of jobs) { const a = x(job.created ?? 0), b = x(job.finished ?? job.gone ?? D.span_ms); if (b < left() || a > width) continue; g.fillStyle = css.outcome[job.outcome] || css.dim; g.fillRect(a, y + 6, Math.max(2, b - a), ROW - 12); }
    g.globalAlpha = 1;
  };
  const ticks = (g, cron, y) => {
    const middle = y + ROW / 2;
    for (const tick of cron.ticks) {
      const px = x(tick[T.DUE]);
      if (px < left() - 6 || px > width + 6) continue;
      const colour = css.tick[tick[T.OUTCOME]] || css.dim;
      g.fillStyle = colour; g.strokeStyle = colour; g.lineWidth = 2;
      g.beginPath();
      if (tick[T.OUTCOME] === "missed") { ring(g, px, middle); slash(g, px, middle, 1); slash(g, px, middle, -1); }
      else if (tick[T.OUTCOME] === "skipped") { ring(g, px, middle); slash(g, px, middle, 1); }
      else if (tick[T.OUTCOME] === "started") { if (tick[T.STARTED] !== null) g.fillRect(px, middle - 1, Math.max(0, x(tick[T.STARTED]) - px), 2); g.arc(px, middle, 4, 0, 7); g.fill(); }
      else if (tick[T.OUTCOME] === "suspended") { g.lineWidth = 1.5; g.arc(px, middle, 3.5, 0, 7); g.stroke(); }
      else { const sign = SIGN[tick[T.OUTCOME]] || "?"; g.fillText(sign, px - g.measureText(sign).width / 2, middle); }
    }
    g.lineWidth = 1;
  };
  const ring = (g, px, middle) => { g.lineWidth = 1.5; g.beginPath(); g.arc(px, middle, 5, 0, 7); g.stroke(); };
  const slash = (g, px, middle, way) => { g.beginPath(); g.moveTo(px - 3.5, middle + 3.5 * way); g.lineTo(px + 3.5, middle - 3.5 * way); g.stroke(); };
  const spans = (g, pod, y, h) => {
    for (const [code, since, until] of pod[P.SPANS]) {
      if (since === null) continue;
      const a = x(since), ended = code === 5 || code === 6;
      const b = until === null ? (ended ? a + 5 : x(D.span_ms)) : ended ? Math.min(x(until), a + 5) : x(until);
      if (b < left() || a > width) continue;
      const more = code === 6 ? 3 : 0;
      g.fillStyle = css.phases[code]; g.fillRect(a, y - more, Math.max(ended ? 5 : 1, b - a), h + 2 * more);
    }
  };
  const bar = (g, job, y) => {
    const end = job.finished ?? job.gone ?? D.span_ms, a = x(job.created ?? 0), b = x(Math.max(end, job.created ?? 0));
    g.strokeStyle = css.dim; g.strokeRect(a + 0.5, y + 3.5, Math.max(3, b - a) - 1, ROW - 7);
    if (job.pods.length <= 400) for (const pod of job.pods) spans(g, pod, y + 6, ROW - 12);
    // What has not ended has no mark of an end.
    if (job.outcome === "Failed") cross(g, b + 5, y + ROW / 2);
    else if (job.outcome === "Complete" || job.outcome === "Deleted") { g.fillStyle = css.outcome[job.outcome]; g.fillRect(b - 1, y + 3, 4, ROW - 6); }
    else if (job.outcome === "Suspended") { g.fillStyle = css.text; g.fillRect(b - 9, y + 6, 2, ROW - 12); g.fillRect(b - 5, y + 6, 2, ROW - 12); }
    g.fillStyle = css.text;
    for (const ms of job.writes) { const px = x(ms); if (px >= left() && px <= width) g.fillRect(px, y + 3, 1, 4); }
    g.fillStyle = css.bad;
    for (const verdict of job.verdicts) { const px = x(verdict[0]); g.beginPath(); g.moveTo(px, y + 3); g.lineTo(px + 6, y + ROW / 2); g.lineTo(px, y + ROW - 3); g.lineTo(px - 6, y + ROW / 2); g.fill(); }
  };

  //// Backlog and latency, on the timeline's own axis

  // A Job that is meant to have no pod waits for none.
  const waits = D.jobs.filter((job) => job.created !== null && job.parallelism !== 0 && job.completions !== 0 && job.outcome !== "Suspended").map((job) => {
    const end = job.finished ?? job.gone ?? D.span_ms;
    return [Math.max(0, job.created), job.queue_s === null ? end : job.created + job.queue_s * 1000, job.queue_s, job];
  });
  const backlog = (() => {
    const changes = waits.flatMap(([from, until]) => [[from, 1], [Math.max(from, until), -1]]).sort((a, b) => a[0] - b[0] || b[1] - a[1]), points = [[0, 0]];
    let n = 0;
    for (const [ms, by] of changes) { n += by; if (points[points.length - 1][0] === ms) points[points.length - 1][1] = n; else points.push([ms, n]); }
    return points;
  })();
  const most = (values) => values.reduce((a, b) => Math.max(a, b), 0);
  const backlogMost = most(backlog.map((point) => point[1])), waitMost = most(waits.map((wait) => wait[2] ?? 0));
  // Some never got a pod: they waited for longer than they were seen.
  const inVain = most(waits.map(([from, until, took]) => took === null ? (until - from) / 1000 : 0));
  const curves = () => {
    const canvas = $("curves"), box = canvas.getBoundingClientRect();
    if (!box.width) return;
    const g = sized(canvas, box), h = box.height - 10, base = h - 1, up = h - 14;
    g.clearRect(0, 0, width, box.height); g.fillStyle = css.panel; g.fillRect(0, 0, width, h);
    g.font = FONT; g.textBaseline = "middle";
    g.save(); g.beginPath(); g.rect(left(), 0, width - left(), h); g.clip();
    bands(g, 0, h);
    g.beginPath(); g.moveTo(x(0), base);
    let last = 0;
    for (const [ms, n] of backlog) { const px = x(ms); g.lineTo(px, base - (up * last) / Math.max(1, backlogMost)); g.lineTo(px, base - (up * n) / Math.max(1, backlogMost)); last = n; }
    g.lineTo(x(D.span_ms), base - (up * last) / Math.max(1, backlogMost)); g.lineTo(x(D.span_ms), base); g.closePath();
    g.globalAlpha = 0.7; g.fillStyle = css.phases[0]; g.fill(); g.globalAlpha = 1;
    g.fillStyle = css.text;
    for (const [from, , took] of waits) if (took !== null) { g.beginPath(); g.arc(x(from), base - (up * took) / Math.max(0.001, waitMost), 2, 0, 7); g.fill(); }
    troubles(g, x, 5);
    g.restore();
    const room = left() - 16, [jobs, waited] = room < 200 ? ["Jobs, no pod: ", "waited: "] : ["Jobs without a first pod: at most ", "waited for it: at most "];
    g.fillStyle = css.text; g.fillText(fitted(g, [`${jobs}${number(backlogMost)}`], room), 8, h * 0.36);
    g.fillText(fitted(g, inVain > waitMost ? [`in vain for ${seconds(Math.round(inVain))} and more`, `${seconds(Math.round(inVain))} and more`] : [`• ${waited}${seconds(waitMost) || "0 s"}`], room), 8, h * 0.72);
    g.strokeStyle = css.line; g.strokeRect(0.5, 0.5, width - 1, h - 1); g.beginPath(); g.moveTo(left() - 0.5, 0); g.lineTo(left() - 0.5, h); g.stroke();
  };

  // Errors and warnings at their times; the worst lie on top.
  const troubles = (g, place, middle) => {
    for (const finding of [...D.findings].reverse()) if (finding.severity !== "info") for (const item of finding.cases) if (item[5] !== null) { g.fillStyle = css.severity[finding.severity]; severity(g, finding.severity, place(item[5]), middle); }
  };

  //// The whole record at a glance, with a brush: as wide as the timeline, which shows the same or a part of it

  const map = $("minimap");
  const minimap = () => {
    const box = map.getBoundingClientRect();
    if (!box.width) return;
    const g = sized(map, box), w = box.width, h = box.height - 15, running = most(D.running.map((point) => point[1])), peak = Math.max(1, running), start = left(), px = (ms) => start + (ms / D.span_ms) * (w - start - 12), end = px(D.span_ms);
    g.clearRect(0, 0, w, box.height);
    g.fillStyle = css.panel; g.fillRect(0, 0, w, h);
    for (const [from, until] of D.pauses) { g.fillStyle = css.hatch; g.fillRect(px(from ?? 0), 0, Math.max(2, px(until) - px(from ?? 0)), h); }
    for (const [, from, until] of D.gaps) { g.fillStyle = css.gap; g.fillRect(px(from), 0, Math.max(2, (until === null ? end : px(until)) - px(from)), h); }
    g.beginPath(); g.moveTo(start, h);
    let last = 0;
    for (const [ms, n] of D.running) { g.lineTo(px(ms), h - (h - 12) * (last / peak)); g.lineTo(px(ms), h - (h - 12) * (n / peak)); last = n; }
    g.lineTo(end, h - (h - 12) * (last / peak)); g.lineTo(end, h); g.closePath();
    g.fillStyle = css.phases[2]; g.fill();
    troubles(g, px, 5);
    g.fillStyle = "rgba(120,120,120,.25)"; g.fillRect(start, 0, px(state.from) - start, h); g.fillRect(px(state.to), 0, end - px(state.to), h);
    g.strokeStyle = css.text; g.strokeRect(px(state.from) + 0.5, 0.5, Math.max(2, px(state.to) - px(state.from) - 1), h - 1);
    g.font = "11px system-ui, sans-serif"; g.textBaseline = "alphabetic"; g.fillStyle = css.dim; g.textAlign = "left";
    g.fillText(clock(0, 1000), start, box.height - 3);
    g.textAlign = "right"; g.fillText(clock(D.span_ms, 1000), end, box.height - 3);
    g.textAlign = "left"; g.font = FONT; g.fillText(fitted(g, ["the whole record; drag to zoom", "whole record"], start - 16), 8, h * 0.42);
    g.fillStyle = css.text; g.fillText(fitted(g, [`pods running: at most ${number(running)} at once`, `running: ${number(running)}`], start - 16), 8, h * 0.86);
  };
  const brush = () => {
    let from = null;
    const where = (event) => { const box = map.getBoundingClientRect(); return Math.max(0, Math.min(1, (event.clientX - box.left - left()) / (box.width - left() - 12))) * D.span_ms; };
    map.addEventListener("pointerdown", (event) => { from = where(event); map.setPointerCapture(event.pointerId); });
    map.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const to = where(event);
      if (Math.abs(to - from) > D.span_ms / 300) { state.from = Math.min(from, to); state.to = Math.max(from, to); clamp(); }
    });
    map.addEventListener("pointerup", (event) => {
      if (from !== null && Math.abs(where(event) - from) <= D.span_ms / 300) { const span = state.to - state.from; state.from = from - span / 2; state.to = from + span / 2; clamp(); }
      from = null;
    });
  };

  //// Zoom

  const zoom = (factor, centre) => {
    const span = Math.min(D.span_ms, Math.max(1, (state.to - state.from) * factor)), share = (centre - state.from) / (state.to - state.from);
    state.from = centre - span * share; state.to = state.from + span; clamp();
  };
  const move = (by) => { state.from += by; state.to += by; clamp(); };
  const clamp = () => {
    const span = Math.max(1, Math.min(state.to - state.from, D.span_ms));
    if (state.from < 0) state.from = 0;
    if (state.from + span > D.span_ms) state.from = D.span_ms - span;
    state.to = state.from + span; draw();
  };
  const around = (from, to, share = 0.05) => {
    const room = Math.max(50, (to - from) * share);
    state.from = Math.max(0, from - room); state.to = Math.min(D.span_ms, to + room); clamp();
  };
  const fit = (job) => around(job.created ?? 0, job.finished ?? job.gone ?? D.span_ms);

