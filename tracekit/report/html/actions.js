  //// Hands

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
  const choose = (place) => {
    state.chosen = Math.max(0, Math.min(rows.length - 1, place));
    const top = state.chosen * ROW, view = scroller.clientHeight;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    if (top + ROW > scroller.scrollTop + view) scroller.scrollTop = top + ROW - view;
    draw();
  };
  const toggle = (entry) => {
    if (entry.kind === "quiet") { if (!state.unfolded.delete(entry.name)) state.unfolded.add(entry.name); }
    else if (entry.kind === "nodes") state.nodes = !state.nodes;
    else if (entry.kind === "group") { if (!state.shut.delete(entry.name)) state.shut.add(entry.name); }
    else if (entry.job && !state.open.delete(entry.job)) state.open.add(entry.job);
    filter();
  };
  const enter = (entry) => {
    if (entry.job) location.hash = `job=${encodeURIComponent(keyOf(entry.job))}&uid=${entry.job.job_uid}`;
    else if (entry.cron) location.hash = `cron=${encodeURIComponent(`${entry.cron.namespace}/${entry.cron.name}`)}`;
    else if (entry.kind !== "node") toggle(entry);
  };
  const point = (ms) => { const span = Math.min(state.to - state.from, 20000); state.from = ms - span / 2; state.to = ms + span / 2; state.range = [ms - span / 200, ms + span / 200]; clamp(); };
  const hands = () => {
    scroller.addEventListener("scroll", () => { tip.hidden = true; draw(); });
    let drag = null, moved = false;
    scroller.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, from: state.from, to: state.to, range: event.shiftKey }; moved = false; });
    addEventListener("pointerup", () => { if (drag && drag.range && moved) measure(); drag = null; });
    scroller.addEventListener("pointermove", (event) => {
      if (!drag) { hover(event); return; }
      const by = event.clientX - drag.x;
      if (Math.abs(by) > 3) moved = true;
      if (drag.range) {
        const box = frame.getBoundingClientRect(), ends = [drag.x, event.clientX].map((px) => Math.max(0, Math.min(D.span_ms, at(px - box.left)))).sort((a, b) => a - b);
        state.range = ends; tip.hidden = true; draw(); return;
      }
      const ms = (-by / (width - left())) * (drag.to - drag.from);
      state.from = drag.from + ms; state.to = drag.to + ms; tip.hidden = true; clamp();
    });
    scroller.addEventListener("pointerleave", () => { tip.hidden = true; });
    scroller.addEventListener("click", (event) => {
      const entry = rows[rowAt(event)];
      if (moved || !entry) return;
      const px = event.clientX - frame.getBoundingClientRect().left;
      choose(rowAt(event));
      if (px < 24 && !entry.pod && !entry.cron) toggle(entry); else enter(entry);
    });
    scroller.addEventListener("dblclick", (event) => { const entry = rows[rowAt(event)]; if (entry && entry.job) fit(entry.job); });
    scroller.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) { if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) { event.preventDefault(); move((event.deltaX / width) * (state.to - state.from)); } return; }
      event.preventDefault();
      zoom(Math.exp(event.deltaY * 0.002), at(event.clientX - frame.getBoundingClientRect().left));
    }, { passive: false });
    addEventListener("resize", () => { filter(); });
    addEventListener("hashchange", follow);
    addEventListener("keydown", keydown);
    $("theme").addEventListener("click", theme);
    $("zone").addEventListener("click", zone);
    $("happened").addEventListener("click", happened);
    $("wrote").addEventListener("click", () => wrote());
    // A4 between its margins, where a pixel is 1/96 inch.
    const PAPER = 718;
    let shown = "light";
    addEventListener("beforeprint", () => { shown = document.documentElement.dataset.theme; document.documentElement.dataset.theme = "light"; readColours(); $("finding-list").classList.add("all"); for (const box of document.querySelectorAll("details.finding")) box.open = true; frame.style.height = `${Math.min(1400, rows.length * ROW + TOP + 14)}px`; $("timeline").style.width = `${Math.min(PAPER, document.body.clientWidth - 20)}px`; paint(); });
    addEventListener("afterprint", () => { document.documentElement.dataset.theme = shown; $("timeline").style.width = ""; readColours(); filter(); });
  };
  const keydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName) && event.target.type !== "checkbox";
    if (event.key === "Escape") { if (typing) frame.focus(); else if (state.range) { state.range = null; measure(); } else close(); return; }
    if (typing) return;
    const middle = (state.from + state.to) / 2, span = state.to - state.from, entry = rows[state.chosen];
    const page = Math.max(1, Math.floor(scroller.clientHeight / ROW) - 1);
    const keys = {
      "/": () => $("search").focus(), t: theme, u: zone, e: () => happened(), c: () => wrote(), w: () => zoom(0.6, middle), s: () => zoom(1 / 0.6, middle), a: () => move(-span / 8), d: () => move(span / 8), "+": () => zoom(0.6, middle), "=": () => zoom(0.6, middle), "-": () => zoom(1 / 0.6, middle), 0: () => { state.from = 0; state.to = D.span_ms; draw(); },
      ArrowLeft: () => move(-span / 8), ArrowRight: () => move(span / 8), ArrowDown: () => choose(state.chosen + 1), ArrowUp: () => choose(state.chosen - 1), PageDown: () => choose(state.chosen + page), PageUp: () => choose(state.chosen - page), Home: () => choose(0), End: () => choose(rows.length - 1),
      " ": () => entry && toggle(entry), Enter: () => entry && enter(entry), f: () => entry && entry.job && fit(entry.job), m: () => { if (entry && entry.job) { state.range = [entry.job.created ?? 0, entry.job.finished ?? entry.job.gone ?? D.span_ms]; measure(); } },
    };
    const does = keys[event.key];
    const pressed = ["BUTTON", "SUMMARY", "A"].includes(event.target.tagName) && (event.key === "Enter" || event.key === " ");
    if (!does || pressed) return;
    event.preventDefault(); does();
  };
  const theme = () => {
    document.documentElement.dataset.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    readColours(); draw();
  };
  const zone = () => { local = !local; heads(); findings(); tiles(); draw(); follow(); };

  //// Links into the page: #job=ns/name&t=ms, #cron=ns/name, #finding=n, #finding=n,m

  // The timeline comes into sight; where it is already, nothing moves.
  const bring = () => {
    const at = $("timeline").getBoundingClientRect();
    if (at.top < 0 || at.top > innerHeight * 0.45) $("timeline").scrollIntoView({ block: "start", behavior: "auto" });
  };
  // The cards of one cause, as one: its Jobs are those of all.
  const together = (cards) => {
    const known = (values) => values.filter((ms) => ms !== null), froms = known(cards.map((one) => one.from)), untils = known(cards.map((one) => one.until));
    return { id: cards[0].id, jobs: new Set(cards.flatMap((one) => [...one.jobs])), from: froms.length ? Math.min(...froms) : null, until: untils.length ? Math.max(...untils) : null };
  };
  const follow = async () => {
    const asked = new URLSearchParams(location.hash.slice(1)), ms = asked.has("t") ? Number(asked.get("t")) : null;
    const cards = (asked.get("finding") ?? "").split(",").map((place) => /^\d+$/.test(place) ? D.findings[place] : null).filter(Boolean);
    const finding = cards.length > 1 ? together(cards) : cards[0];
    if (finding) {
      state.finding = finding.jobs.size ? finding : null;
      const from = finding.from ?? 0, until = Math.max(finding.until ?? from, from);
      state.band = [from, until];
      around(from, until, 0.3);
      filter();
      // What it names: its Jobs and CronJobs, or else who led.
      const named = rows.findIndex((row) => finding.jobs.has(row.job) || finding.jobs.has(row.cron)), led = rows.findIndex((row) => row.kind === "leader");
      if (named >= 0 || led >= 0) choose(named >= 0 ? named : led);
      bring();
      return;
    }
    const job = byUid.get(asked.get("uid")) || byKey.get(asked.get("job")), cron = cronByKey.get(asked.get("cron"));
    const told = asked.has("timeline") ? happened() : asked.has("who") ? wrote(asked.get("who")) : null;
    let opened = null;
    if (job) {
      if (!rows.some((row) => row.job === job)) { state.unfolded.add(job.namespace); state.unfolded.add(""); state.unfolded.add(`${job.namespace}/${job.cronjob}`); state.finding = null; filter(); }
      opened = open(job);
      if (!asked.has("uid") || ms !== null) fit(job);
      choose(rows.findIndex((row) => row.job === job));
    } else if (cron) { openCron(cron); choose(rows.findIndex((row) => row.cron === cron)); }
    if ((job || cron || told) && innerWidth >= 1100) bring();
    await (told || opened);
    if (ms !== null && Number.isFinite(ms)) {
      const steps = [...document.querySelectorAll(".account > li")], step = steps.reverse().find((one) => Number(one.dataset.ms) <= ms + 1000);
      if (step) { step.classList.add("pointed"); $("details").scrollTop = Math.max(0, step.offsetTop - 80); }
    }
  };

  document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  readColours(); heads(); findings(); tiles(); controls(); hands(); brush(); servedBy(); whenJudged(); filter();
  if (location.hash) await follow();
  else if (D.jobs.length === 1) { fit(D.jobs[0]); await open(D.jobs[0]); scrollTo(0, 0); }
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
})();
