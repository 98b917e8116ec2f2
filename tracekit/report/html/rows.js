  //// Rows: lanes of the whole, CronJobs, groups, Jobs, pods

  const FOLD_FROM = 40;
  const state = { from: 0, to: D.span_ms, chosen: -1, open: new Set(), shut: new Set(), wanted: new Set(OUTCOMES), text: "", namespace: "", group: "", sort: "trouble", all: D.jobs.length === 1, fold: D.jobs.length > FOLD_FROM, unfolded: new Set(), finding: null, range: null, band: null, kept: null, nodes: false };
  let rows = [], shownJobs = 0;
  // What a search looks in, put together where somebody searches.
  const texts = new Map();
  const textOf = (thing) => {
    if (!texts.has(thing)) texts.set(thing, (thing.ticks ? [thing.namespace, thing.name, thing.schedule, ...thing.findings.map((f) => f.id)] : [thing.namespace, thing.job, thing.cronjob, thing.outcome, thing.reason, thing.message, thing.image, ...thing.pods.map((pod) => `${pod[P.NAME]} ${pod[P.REASON] || ""} ${pod[P.NODE] || ""}`), ...thing.verdicts.map((v) => `${v[1]} ${v[2]}`), ...thing.findings.map((f) => f.id)]).join(" ").toLowerCase());
    return texts.get(thing);
  };
  const lasted = (job) => (job.finished ?? job.gone ?? D.span_ms) - (job.created ?? 0);
  const ORDERS = {
    created: () => 0,
    trouble: (a, b) => trouble(a) - trouble(b),
    failed: (a, b) => (b.outcome === "Failed") - (a.outcome === "Failed"),
    divergent: (a, b) => b.verdicts.length - a.verdicts.length,
    longest: (a, b) => lasted(b) - lasted(a),
    retries: (a, b) => b.retries - a.retries,
  };
  const quiet = (job) => job.outcome === "Complete" && !job.verdicts.length && !job.findings.some((finding) => finding.severity !== "info");
  const passes = (thing) => {
    if (state.namespace && thing.namespace !== state.namespace) return false;
    if (state.finding && !state.finding.jobs.has(thing)) return false;
    const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
    return !words.length || words.every((word) => textOf(thing).includes(word));
  };
  const addJobs = (jobs, name) => {
    const folded = state.fold && !state.finding && !state.text ? jobs.filter(quiet) : [];
    for (const job of folded.length > 1 ? jobs.filter((job) => !quiet(job)) : jobs) addJob(job);
    if (folded.length > 1) {
      const opened = state.unfolded.has(name);
      rows.push({ kind: "quiet", jobs: folded, name, opened });
      if (opened) folded.forEach(addJob);
    }
  };
  const addJob = (job) => {
    rows.push({ kind: "job", job });
    if (state.all || state.open.has(job)) for (const pod of job.pods) rows.push({ kind: "pod", job, pod });
  };
  const filter = () => {
    const before = rows[state.chosen], jobs = D.jobs.filter((job) => state.wanted.has(job.outcome) && passes(job));
    const crons = D.crons.filter(passes);
    if (state.sort === "trouble") crons.sort(ORDERS.trouble);
    shownJobs = jobs.length;
    jobs.sort(ORDERS[state.sort]);
    rows = [];
    if (!state.text) {
      if (D.pauses.length || D.leaders.length > 1) rows.push({ kind: "leader" });
      if (D.edits.length) rows.push({ kind: "edits" });
      if (D.warnings.length) rows.push({ kind: "warnings" });
      if (nodes.size > 1) {
        rows.push({ kind: "nodes" });
        if (state.nodes) for (const name of [...nodes.keys()].sort()) rows.push({ kind: "node", name });
      }
    }
    if (state.group === "cronjob") {
      for (const cron of crons) { rows.push({ kind: "cron", cron }); addJobs(jobs.filter((job) => job.namespace === cron.namespace && job.cronjob === cron.name), `${cron.namespace}/${cron.name}`); }
      const rest = jobs.filter((job) => !job.cronjob || !crons.some((cron) => cron.namespace === job.namespace && cron.name === job.cronjob));
      if (rest.length) { if (crons.length) rows.push({ kind: "group", name: "without a CronJob", jobs: rest }); addJobs(rest, ""); }
    } else if (state.group === "namespace") {
      for (const name of [...new Set([...jobs, ...crons].map((thing) => thing.namespace))].sort()) {
        const mine = jobs.filter((job) => job.namespace === name);
        rows.push({ kind: "group", name, jobs: mine });
        if (state.shut.has(name)) continue;
        for (const cron of crons) if (cron.namespace === name) rows.push({ kind: "cron", cron });
        addJobs(mine, name);
      }
    } else {
      for (const cron of crons) rows.push({ kind: "cron", cron });
      addJobs(jobs, "");
    }
    state.chosen = before ? rows.findIndex((row) => same(row, before)) : -1;
    $("spacer").style.height = `${rows.length * ROW}px`;
    frame.style.height = `${Math.max(150, Math.min(Math.round(innerHeight * 0.66), 680, rows.length * ROW + TOP + 14))}px`;
    $("count").textContent = `${number(shownJobs)} of ${number(D.jobs.length)} Jobs`;
    $("only").hidden = !state.finding;
    $("only").textContent = state.finding ? `only ${state.finding.id} ✕` : "";
    draw();
  };
  const same = (a, b) => a.kind === b.kind && a.job === b.job && a.pod === b.pod && a.cron === b.cron && a.name === b.name;
  const controls = () => {
    const spaces = D.served ? D.served.namespaces : [...new Set([...D.jobs, ...D.crons].map((thing) => thing.namespace))].sort();
    $("namespace").append(el("option", { value: "" }, `all namespaces (${spaces.length})`), ...spaces.map((name) => el("option", { value: name }, name)));
    for (const outcome of OUTCOMES) {
      const n = D.jobs.filter((job) => job.outcome === outcome).length;
      if (!n) continue;
      $("chips").append(el("button", { type: "button", "aria-pressed": "true", onclick: (event) => {
        const on = state.wanted.delete(outcome) ? false : Boolean(state.wanted.add(outcome));
        event.currentTarget.setAttribute("aria-pressed", String(on)); filter();
      } }, `${outcome} ${number(n)}`));
    }
    let timer = 0;
    $("search").addEventListener("input", (event) => { clearTimeout(timer); timer = setTimeout(() => { state.text = event.target.value; filter(); }, 80); });
    for (const name of ["namespace", "group", "sort"]) $(name).addEventListener("change", (event) => { state[name] = event.target.value; filter(); });
    $("open-all").checked = state.all;
    $("open-all").addEventListener("change", (event) => { state.all = event.target.checked; filter(); });
    $("fold").checked = state.fold;
    $("fold").addEventListener("change", (event) => { state.fold = event.target.checked; filter(); });
    $("only").addEventListener("click", () => { state.finding = null; state.band = null; filter(); });
    $("search").addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault(); clearTimeout(timer); state.text = event.target.value; filter();
      const first = rows.findIndex((entry) => entry.kind === "job" || entry.kind === "cron");
      if (state.text && first >= 0) { choose(first); enter(rows[first]); }
    });
    legend();
  };
  // What is drawn in this record, and nothing else.
  const legend = () => {
    const key = (colour, text) => el("span", {}, el("i", { style: { background: colour } }), text);
    const shape = (sign, text, kind = "") => el("span", { class: kind }, el("b", { class: "sign" }, sign), ` ${text}`);
    const phases = new Set(D.jobs.flatMap((job) => job.pods.flatMap((pod) => pod[P.SPANS].map((span) => span[0]))));
    const ended = new Set(D.jobs.map((job) => job.outcome)), worst = new Set(D.findings.map((finding) => finding.severity));
    const became = new Set(D.crons.flatMap((cron) => cron.ticks.map((tick) => tick[T.OUTCOME])));
    const some = (shown, ...nodes) => shown ? nodes : [];
    $("keys").replaceChildren(
      el("span", {}, el("i", { class: "outline" }), "a Job"),
      ...some(ended.has("Complete"), key("var(--p5)", "its end: Complete")), ...some(ended.has("Failed"), shape("✕", "Failed", "bad")), ...some(ended.has("Deleted"), key("var(--p4)", "Deleted")), ...some(ended.has("Suspended"), shape("‖", "Suspended")),
      ...D.phases.flatMap((phase, code) => some(phases.has(code), key(`var(--p${code})`, `pod ${phase}${phase === "Failed" ? " (taller)" : ""}`))),
      shape("│", "controller's write"), ...some(D.edits.length, shape("▼", "user's edit")), ...some(D.divergences.length, shape("◆", "divergence", "bad")),
      ...some(worst.has("error"), shape("■", "error", "bad")), ...some(worst.has("warning") || D.warnings.length, shape("▲", "warning", "late")),
      ...Object.entries(SIGN).flatMap(([outcome, sign]) => some(became.has(outcome), shape(sign, `${outcome} (a due time)`, { started: "good", missed: "bad" }[outcome]))),
      ...some(D.leaders.length > 1, shape("┃", "another took over the lead")), ...some(D.pauses.length, el("span", {}, el("i", { class: "nobody" }), "nobody led")), ...some(D.gaps.length, key("var(--gap)", "gap: not seen")),
      key("var(--p0)", "above: Jobs without a first pod"), shape("•", "how long each waited for it"));
  };
