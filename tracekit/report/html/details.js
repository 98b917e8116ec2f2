  //// What the pointer is over

  const describe = (entry, ms) => {
    const { kind, job, pod, cron, jobs, name } = entry, lines = [], reach = ms === null ? 0 : ((state.to - state.from) / (width - left())) * 5;
    const near = (list) => ms === null ? [] : list.filter((item) => Math.abs(item[0] - ms) < reach);
    if (pod) {
      lines.push(pod[P.NAME], `${pod[P.PHASE] || "no phase"}${pod[P.EXIT] === null ? "" : `, exit code ${pod[P.EXIT]}`}${pod[P.REASON] ? `, ${pod[P.REASON]}` : ""}${pod[P.ENDED] ? `, ended by ${pod[P.ENDED]}` : ""}`, `attempt ${pod[P.ATTEMPT]}${pod[P.NODE] ? ` on ${pod[P.NODE]}` : ""}`);
      const span = ms === null ? null : pod[P.SPANS].find(([, since, until]) => since <= ms && (until === null || ms < until));
      if (span) lines.push(`${D.phases[span[0]]} since ${iso(span[1])}${span[2] === null ? "" : ` for ${seconds((span[2] - span[1]) / 1000)}`}`);
    } else if (kind === "job") {
      lines.push(keyOf(job), `${job.outcome}${job.reason ? `: ${job.reason}` : ""}, ${count(job.pod_count, "pod")}, ${number(job.pods_failed)} failed, ${count(job.retries, "retry")}`);
      if (job.duration_s !== null) lines.push(`took ${seconds(job.duration_s)}${job.backoff_s ? `, ${seconds(Math.round(job.backoff_s))} of it in back-off` : ""}`);
      for (const finding of job.findings) lines.push(`${finding.id} ${finding.text}`);
      for (const verdict of near(job.verdicts)) lines.push(`◆ ${verdict[2]} ${verdict[1]}: ${verdict[4]}`);
      if (!job.actions) detailed(job).catch(() => {});
      const writes = near(job.actions || []);
      for (const action of writes.slice(0, 8)) lines.push(`${clock(action[0], 1)} ${action[1]} ${action[2]}${action[3] ? ` by ${action[3]}` : ""}`);
      if (writes.length > 8) lines.push(`… ${writes.length - 8} more writes here`);
    } else if (kind === "cron") {
      lines.push(`${cron.namespace}/${cron.name}`, cron.schedule);
      for (const tick of near(cron.ticks).slice(0, 5)) lines.push(`${clock(tick[T.DUE], 1000)} ${tick[T.OUTCOME]}: ${tick[T.WHY] || tick[T.JOB] || ""}`);
    } else if (kind === "leader") {
      lines.push("Who led the controllers");
      for (const [from, until, holder] of D.leaders) if (ms !== null && from <= ms && (until === null || ms <= until)) lines.push(holder);
      for (const [from, until, what] of D.pauses) if (ms !== null && from <= ms && ms <= until) lines.push(`nobody led for ${seconds((until - from) / 1000)}: ${what}`);
    } else if (kind === "edits") for (const item of near(D.edits).slice(0, 8)) lines.push(`${clock(item[0], 1)} ${item[1]} ${item[2]}${item[3] ? ` by ${item[3]}` : ""}`);
    else if (kind === "warnings") for (const item of near(D.warnings).slice(0, 8)) lines.push(`${clock(item[0], 1)} ${item[1]} ${item[2]}: ${item[3] || ""}`);
    else if (kind === "nodes") lines.push("Pods that failed, on whatever node; Enter shows each node");
    else if (kind === "node") {
      const pods = nodes.get(name), failed = pods.filter((one) => one[P.PHASE] === "Failed").length;
      lines.push(name, `${count(pods.length, "pod")}, ${number(failed)} failed`);
      if (ms !== null) for (const one of pods.filter((pod) => pod[P.SPANS].some(([, since, until]) => since !== null && since <= ms && (until === null || ms < until))).slice(0, 8)) lines.push(one[P.NAME]);
    } else if (jobs) lines.push(name || "Jobs", tally(jobs.map((one) => one.outcome)).map(([outcome, n]) => `${n} ${outcome}`).join(", "));
    if (ms !== null) {
      for (const [stream, since, until, reason] of D.gaps) if (since <= ms && (until === null || ms <= until)) lines.push(`gap in ${stream}: ${reason}`);
      lines.push(both(ms));
    }
    return lines.join("\n");
  };

  //// The chosen Job or CronJob, beside the timeline

  const panel = (heading, ...children) => {
    const box = $("details");
    box.replaceChildren(el("button", { type: "button", class: "close", onclick: close }, "Close"), el("h2", { title: heading }, heading), ...children.filter(Boolean));
    box.hidden = false;
    $("stage").classList.add("split");
    if (innerWidth < 1100) box.scrollIntoView({ block: "nearest", behavior: "auto" });
    box.scrollTop = 0;
    draw();
  };
  const facts = (pairs) => {
    const list = el("dl");
    for (const [name, value] of pairs) if (value) list.append(el("dt", {}, name), el("dd", {}, value));
    return list;
  };
  const found = (thing) => thing.findings.length ? el("div", {}, ...thing.findings.map((finding) => el("p", { class: `mine ${finding.severity}` }, el("b", {}, finding.id), " ", finding.text, el("span", { class: "case" }, (finding.cases.find((item) => item[0] === "Job" ? item[3] === thing.job_uid : item[1] === thing.namespace && item[2] === thing.name) || [])[4] || "")))) : null;
  const lastWords = (job) => job.logs.length ? [el("h3", {}, `Last words (${job.logs.length})`), ...job.logs.map(([ms, pod, container, restart, code, reason, text]) => el("div", {}, time(ms), ` ${pod} ${container}${restart ? `, run ${restart + 1}` : ""}${code === null ? "" : `: exit code ${code}`}${reason ? ` (${reason})` : ""}`, el("pre", {}, text || "it said nothing")))] : [];
  //// Two Jobs side by side: one is kept, the next that is opened stands beside it

  const COMPARED = [
    ["outcome", (job) => `${job.outcome}${job.reason ? ` (${job.reason})` : ""}`], ["message", (job) => job.message], ["created", (job) => iso(job.created)], ["finished", (job) => iso(job.finished)],
    ["waited for its first pod", (job) => seconds(job.queue_s)], ["took", (job) => seconds(job.duration_s)], ["in back-off", (job) => seconds(job.backoff_s)], ["pods", (job) => job.pod_count], ["failed pods", (job) => job.pods_failed], ["retries", (job) => job.retries], ["restarts", (job) => job.restarts],
    ["parallelism", (job) => job.parallelism], ["completions", (job) => job.completions], ["backoffLimit", (job) => job.backoff_limit], ["activeDeadlineSeconds", (job) => job.active_deadline_s], ["image", (job) => job.image], ["nodes", (job) => [...new Set(job.pods.map((pod) => pod[P.NODE]).filter(Boolean))].sort().join(", ")],
    ["findings", (job) => job.findings.map((finding) => finding.id).join(", ")], ["divergences", (job) => job.verdicts.length],
  ];
  const compared = (job) => {
    const kept = state.kept && state.kept !== job ? state.kept : null;
    const text = state.kept === job ? "kept: open the one to compare it with" : "compare";
    const button = el("button", { type: "button", class: "compare", onclick: () => { state.kept = state.kept === job ? null : job; open(job); } }, text);
    if (!kept) return el("p", { class: "links" }, button);
    const lines = COMPARED.map(([name, value]) => [name, show(value(kept)), show(value(job))]);
    return el("div", { class: "comparison" }, el("p", { class: "links" }, button, command("compare", D.trace, keyOf(kept), keyOf(job))),
      table(["", keyOf(kept), keyOf(job)], lines.filter(([, a, b]) => a || b).map(([name, a, b]) => [`${a === b ? "" : "≠ "}${name}`, a, b])));
  };

  // The last that was asked for is shown, whichever comes first.
  let turn = 0;
  const failed = (error) => panel("This cannot be shown", el("p", { class: "bad", role: "alert" }, error.message));
  const shown = async (loading, show) => {
    const mine = turn += 1;
    try { const found = await loading; if (mine === turn) show(found); } catch (error) { if (mine === turn) failed(error); }
  };
  const open = (job) => shown(detailed(job), () => tell(job));
  const tell = (job) => {
    const divergent = job.verdicts.map(([ms, action, verdict, subject, why, fields]) => el("div", { class: "divergence" }, el("b", {}, `${verdict} ${action}`), ` ${subject} at `, time(ms), el("div", {}, why), fields.length ? table(["field", "expected", "observed"], fields) : null));
    const took = job.duration_s === null ? "" : `${seconds(job.duration_s)}${job.backoff_s ? `, ${seconds(Math.round(job.backoff_s))} of it in back-off` : ""}`;
    panel(keyOf(job), compared(job), found(job),
      facts([["outcome", `${job.outcome}${job.reason ? ` (${job.reason})` : ""}`], ["message", job.message], ["CronJob", job.cronjob], ["created", job.created === null ? "" : time(job.created)], ["finished", job.finished === null ? "" : time(job.finished)], ["waited for its first pod", seconds(job.queue_s)], ["took", took], ["spec", `parallelism ${show(job.parallelism)}, completions ${show(job.completions) || "none"}, backoffLimit ${show(job.backoff_limit)}${show(job.active_deadline_s) === "" ? "" : `, activeDeadlineSeconds ${job.active_deadline_s}`}${show(job.ttl_s) === "" ? "" : `, ttlSecondsAfterFinished ${job.ttl_s}`}`], ["image", job.image], ["status", `${job.succeeded} succeeded, ${job.failed} failed`]]),
      command("explain", D.trace, keyOf(job)),
      divergent.length ? el("h3", { class: "bad" }, "Divergences from the rules") : null, ...divergent,
      el("h3", {}, "What happened"), account(job),
      job.pods.length ? el("h3", {}, `Pods (${job.pods.length})`) : null, job.pods.length ? pods(job) : null,
      ...lastWords(job),
      el("h3", {}, `Revisions (${job.history.length}): choose two to see what differs`), history(job),
      job.actions.length ? el("h3", {}, `Writes (${job.actions.length})`) : null, job.actions.length ? table(["time", "what", "object", "by", "revision"], job.actions.map(([ms, action, object, actor, rv]) => [time(ms), action, object, actor, rv])) : null,
      job.events.length ? el("h3", {}, `Events (${job.events.length})`) : null, job.events.length ? table(["time", "type", "reason", "message", "count"], job.events.map(([ms, type, reason, message, n]) => [time(ms), type, reason, message, n])) : null);
  };
  const account = (job) => {
    if (!job.account) return el("p", { class: "none" }, D.judged === null ? "Not judged." : "There was no room for this Job's account in the report: the command above prints it.");
    const changes = new Map();
    for (const [, rv, , , diff] of job.history) if (diff.length) changes.set(rv, diff);
    for (const pod of job.pods) for (const [, rv, diff] of D.pod_diffs[pod[P.UID]] || []) changes.set(rv, diff);
    const steps = job.account.steps.map(([ms, rv, who, what, details, verdict]) => {
      const bad = ["different", "missing", "extra", "early", "late"].includes(verdict), diff = changes.get(rv);
      return el("li", { class: bad ? "bad-step" : "", "data-ms": ms }, el("button", { type: "button", class: "at", title: `${both(ms)}: show on the timeline`, onclick: () => point(ms) }, clock(ms, 1)), " ", el("b", {}, who), ` ${what}`, verdict ? el("span", { class: bad ? "bad" : "dim" }, ` [${verdict}]`) : null,
        details.length ? el("ul", {}, ...details.map((text) => el("li", {}, text))) : null,
        diff ? el("details", { class: "revision" }, el("summary", {}, `revision ${rv}: ${count(diff.length, "field")}`), table(["field", "before", "after"], diff, "diff")) : null);
    });
    return el("div", {}, job.account.opening ? el("p", {}, el("strong", {}, job.account.opening)) : null, el("ol", { class: "account" }, ...steps), job.account.closing ? el("p", {}, job.account.closing) : null);
  };
  const pods = (job) => {
    const told = job.pods.filter((pod) => D.pod_diffs[pod[P.UID]]);
    const columns = [["pod", P.NAME], ["index", P.INDEX], ["attempt", P.ATTEMPT], ["phase", P.PHASE], ["exit code", P.EXIT], ["reason", P.REASON], ["ended by", P.ENDED], ["queue", P.QUEUE, seconds], ["run", P.RUN, seconds], ["node", P.NODE]].filter(([, place]) => job.pods.some((pod) => pod[place] !== null && pod[place] !== ""));
    const box = el("div", {}, table(columns.map(([head]) => head), job.pods.map((pod) => columns.map(([, place, told]) => told ? told(pod[place]) : pod[place]))));
    for (const pod of told.slice(0, 50)) box.append(el("details", { class: "revision" }, el("summary", {}, `revisions of ${pod[P.NAME]}`), ...D.pod_diffs[pod[P.UID]].map(([ms, rv, diff]) => el("div", {}, el("p", {}, time(ms), ` revision ${rv}`), table(["field", "before", "after"], diff, "diff")))));
    return box;
  };
  const history = (job) => {
    const target = el("div"), result = el("div");
    const pick = (name, value) => el("select", { "aria-label": name, onchange: () => compare() }, ...job.history.map(([ms, rv], place) => { const option = el("option", { value: place }, `${rv} · ${iso(ms).slice(11)}`); option.selected = place === value; return option; }));
    const from = pick("from revision", Math.max(0, job.history.length - 2)), to = pick("to revision", job.history.length - 1);
    const compare = () => {
      const a = Math.min(Number(from.value), Number(to.value)), b = Math.max(Number(from.value), Number(to.value)), changed = new Map();
      for (let place = a + 1; place <= b; place += 1) for (const [path, before, now] of job.history[place][4]) changed.set(path, [changed.has(path) ? changed.get(path)[0] : before, now]);
      const lines = [...changed].filter(([, [before, now]]) => show(before) !== show(now)).map(([path, [before, now]]) => [path, show(before), show(now)]);
      result.replaceChildren(lines.length ? table(["field", "before", "after"], lines, "diff") : el("p", {}, "Nothing differs but what the server keeps."));
    };
    target.append(table(["time", "revision", "what changed", "by"], job.history.map(([ms, rv, changes, writer]) => [time(ms), rv, (changes || []).join(", "), writer])));
    if (job.history.length > 1) { target.append(el("p", {}, "from ", from, " to ", to), result); compare(); }
    return target;
  };
  const openCron = (cron) => {
    turn += 1;
    const key = `${cron.namespace}/${cron.name}`;
    panel(`CronJob ${key}`, found(cron), facts([["schedule", cron.schedule], ["ticks", tally(cron.ticks.map((tick) => tick[T.OUTCOME])).map(([outcome, n]) => `${n} ${outcome}`).join(", ") || "none while it was recorded"]]),
      command("explain", D.trace, key),
      el("h3", {}, `Ticks (${number(cron.ticks.length)})`),
      table(["due", "outcome", "rule", "Job", "why"], cron.ticks.slice(0, 3000).map((tick) => [time(tick[T.DUE]), el("span", { class: tick[T.OUTCOME] === "missed" ? "bad" : "" }, tick[T.OUTCOME]), tick[T.POLICY], byKey.has(`${cron.namespace}/${tick[T.JOB]}`) ? el("a", { href: `#job=${encodeURIComponent(`${cron.namespace}/${tick[T.JOB]}`)}` }, tick[T.JOB]) : tick[T.JOB], tick[T.WHY]])));
  };
  const close = () => { turn += 1; $("details").hidden = true; $("stage").classList.remove("split"); if (location.hash) history_clear(); frame.focus(); draw(); };
  const history_clear = () => window.history.replaceState(null, "", location.pathname + location.search);

  //// A range of time, measured

  const measure = () => {
    const box = $("range");
    box.hidden = !state.range;
    if (!state.range) { draw(); return; }
    const [from, to] = state.range, inside = (ms) => ms !== null && from <= ms && ms <= to;
    const jobs = D.jobs.filter(passes), all = jobs.flatMap((job) => job.pods);
    const firsts = all.filter((pod) => pod[P.SPANS].length && inside(pod[P.SPANS][0][1])).length;
    const ends = (code) => all.filter((pod) => pod[P.SPANS].some((span) => span[0] === code && inside(span[1]))).length;
    const due = D.crons.filter(passes).flatMap((cron) => cron.ticks).filter((tick) => inside(tick[T.DUE]));
    const told = [`${iso(from)} to ${iso(to)}, ${seconds((to - from) / 1000)}: `, [
      `${count(jobs.filter((job) => inside(job.created)).length, "Job")} created`, `${jobs.filter((job) => inside(job.finished) && job.outcome === "Complete").length} completed`, `${jobs.filter((job) => inside(job.finished) && job.outcome === "Failed").length} failed`,
      `${count(firsts, "pod")} created`, `${ends(5)} succeeded`, `${ends(6)} failed`, `${count(jobs.reduce((n, job) => n + job.writes.filter(inside).length, 0), "write")}`,
      due.length ? `ticks: ${tally(due.map((tick) => tick[T.OUTCOME])).map(([outcome, n]) => `${n} ${outcome}`).join(", ")}` : "",
      `${count(jobs.reduce((n, job) => n + job.verdicts.filter((verdict) => inside(verdict[0])).length, 0), "divergence")}`].filter(Boolean).join(", "), ". "];
    box.replaceChildren(...told, command("diagnose", D.trace, "--from", rfc(Math.floor(from)), "--to", rfc(Math.ceil(to))), " ", el("button", { type: "button", onclick: () => { around(from, to, 0.02); } }, "zoom here"), " ", el("button", { type: "button", onclick: () => { state.range = null; measure(); } }, "✕"));
    draw();
  };

