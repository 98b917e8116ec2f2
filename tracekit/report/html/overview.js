  //// What went wrong, then how much there is

  // Of a page that is served: of all Jobs, those that are not here, too.
  const summed = D.served ? D.served.totals : D.jobs;
  const sum = (key) => summed.reduce((total, row) => total + (row[key] || 0), 0);
  const jobCount = D.served ? D.served.jobs : D.jobs.length;
  const outcomes = () => D.served ? D.served.totals.map((row) => [row.outcome, row.jobs]) : tally(D.jobs.map((job) => job.outcome));
  const divergences = D.divergences.length;
  const unjudged = D.served && !D.served.judged;
  const heads = () => {
    $("title").textContent = D.title;
    $("title").title = D.title;
    const rules = D.rules ? ` · judged by the rules of ${D.rules}, which are not the record's own` : "";
    const zoneName = local ? "local" : "UTC", when = typeof D.looked_ms === "number" ? `one look at ${iso(D.looked_ms).slice(0, 19)} ${zoneName}; what came before is as the objects tell it` : `${iso(0).slice(0, 19)} to ${iso(D.span_ms).slice(0, 19)} ${zoneName} (${seconds(Math.round(D.span_ms / 1000))})`;
    $("subtitle").textContent = `${D.version ? `Kubernetes ${D.version} · ` : ""}${when}${rules}`;
    $("zone").textContent = local ? "local time" : "UTC";
  };
  const findings = () => {
    const list = $("finding-list");
    list.replaceChildren();
    if (D.problems.length) {
      $("problems").hidden = false;
      $("problems").replaceChildren(...D.problems.map((text) => el("p", {}, text)));
      // Why nothing was judged stands first; what the page leaves out, last.
      if (D.judged === null && !unjudged) $("findings").before($("problems"));
    }
    if (!D.findings.length) list.append(el("p", { class: "none" }, unjudged ? "The record is being judged: findings and verdicts come here once it is." : D.judged === null ? "Nothing was judged; the reason stands above." : "Nothing was found: the controllers kept to their rules, and no Job or CronJob is in trouble."));
    D.findings.forEach((finding, place) => list.append(findingRow(finding, place)));
    const more = D.findings.length - SHOWN, failures = D.failures || [];
    $("more").replaceChildren();
    if (more > 0 && !list.classList.contains("all")) {
      const button = el("button", { type: "button", class: "more", onclick: () => { list.classList.add("all"); button.remove(); } }, `${more} more below: show all ${D.findings.length}`);
      $("more").append(button);
    }
    // Each failed Job once, with what it is put down to.
    const failed = failures.reduce((n, share) => n + share[1], 0);
    $("failed").hidden = failed < 2;
    const unknown = failures.filter((share) => share[4]), known = failures.filter((share) => !share[4]), told = known.length > CAUSES + 1 ? known.slice(0, CAUSES) : known, others = known.slice(told.length);
    // A cause may have several cards, by what the Jobs of each have in common: the number is of all.
    const cards = (places) => places.length === 1 ? "its card" : `its ${places.length} cards, together`;
    $("failed").title = failures.map(([, n, why]) => `${number(n)} ${why}`).join("\n");
    $("failed").replaceChildren(el("b", {}, `${count(failed, "Job")} failed: `), ...[...told, ...unknown].flatMap(([places, n, why], at) => [at ? ", " : "", el("a", { href: `#finding=${places}`, title: cards(places) }, number(n)), ` ${why}`]),
      others.length ? `; ${number(others.reduce((n, share) => n + share[1], 0))} by ${others.length} other causes (${others.map((share) => share[3]).join(", ")}).` : ".");
  };
  const SHOWN = 3, DRAWN = 40, CAUSES = 3, BARS = 9;
  // What follows from another finding stands below it.
  const follows = (finding, place) => finding.cause && D.findings.slice(0, place).some((other) => other.id === finding.cause);
  // What advice puts between backticks is to be typed.
  const typed = (text) => text.split("`").map((part, at) => at % 2 ? el("code", {}, part) : part);
  // A list that is cut says so; what nobody asked for is not drawn, on paper neither.
  const firstOf = (items, drawn, left) => {
    const more = (n) => n > 0 ? [el("li", {}, `and ${number(n)} more`)] : [];
    const list = el("ul", { class: items.length > SHOWN + 1 ? "cut" : "" }, ...items.slice(0, DRAWN).map(drawn), ...more(items.length + left - DRAWN));
    const rest = el("button", { type: "button", class: "rest", onclick: () => { list.className = ""; list.replaceChildren(...items.map(drawn), ...more(left)); rest.remove(); } }, `${number(items.length + left - SHOWN)} more`);
    return list.className ? [list, rest] : [list];
  };
  const findingRow = (finding, place) => {
    const drawn = ([kind, namespace, name, uid, detail, from]) => {
      const job = kind === "Job" ? byUid.get(uid) || byKey.get(`${namespace}/${name}`) : null;
      const cron = kind === "CronJob" ? cronByKey.get(`${namespace}/${name}`) : null;
      const label = namespace ? `${namespace}/${name}` : name;
      const goal = job || cron;
      return el("li", {}, goal ? el("a", { href: job ? `#job=${encodeURIComponent(label)}&t=${Math.round(from || 0)}` : `#cron=${encodeURIComponent(label)}&t=${Math.round(from || 0)}` }, label) : el("b", {}, label), " ", detail);
    };
    const box = el("details", { class: `finding ${finding.severity}${place < SHOWN ? "" : " extra"}${follows(finding, place) ? " follows" : ""}`, "data-id": finding.id },
      el("summary", {}, el("span", { class: "severity" }, finding.severity), el("span", { class: "id" }, finding.id), el("span", { class: "text" }, finding.text), finding.from === null ? null : el("span", { class: "since" }, "since ", el("time", { datetime: rfc(finding.from), title: both(finding.from) }, iso(finding.from).slice(0, 19)))),
      ...firstOf(finding.cases, drawn, finding.left),
      finding.actors.length ? el("p", { class: "by" }, el("b", {}, "By: "), finding.actors.join(", ")) : null,
      el("p", { class: "do" }, el("b", {}, "What to do: "), ...typed(finding.do), " ",
        el("button", { type: "button", onclick: () => { location.hash = `finding=${place}`; } }, "show on the timeline"), " ",
        finding.url ? el("a", { href: finding.url, rel: "noreferrer noopener", target: "_blank" }, `kubernetes/kubernetes#${finding.thread}`) : null),
      el("p", { class: "links" }, ...finding.commands.map((words) => command(...words.slice(1)))));
    // What is worst is told at once, at any width.
    if (place === 0) box.open = true;
    return box;
  };
  const tiles = () => {
    const tile = (value, label, kind = "") => el("div", { class: `tile ${kind}` }, el("b", {}, value), el("span", {}, label));
    const counting = (n, noun, kind) => tile(number(n), plural(n, noun), kind);
    const failed = (outcomes().find(([outcome]) => outcome === "Failed") || [0, 0])[1];
    const missed = D.crons.reduce((n, cron) => n + cron.ticks.filter((tick) => tick[T.OUTCOME] === "missed").length, 0);
    $("tiles").replaceChildren(
      counting(jobCount, "Job"),
      tile(number(failed), "failed", failed ? "bad" : ""),
      ...(D.pods_recorded ? [counting(sum("pod_count"), "pod"), counting(sum("pods_failed"), "failed pod", sum("pods_failed") ? "bad" : "")] : [tile("–", "pods: not recorded")]),
      ...(D.pods_recorded ? [counting(sum("retries"), "retry"), tile(seconds(Math.round(sum("backoff_s"))) || "0 s", "lost to back-off")] : []),
      D.crons.length ? counting(missed, "missed run", missed ? "bad" : "good") : "",
      D.judged === null ? tile("–", unjudged ? "being judged" : "not judged") : counting(divergences, "divergence", divergences ? "bad" : "good"),
      counting(D.gaps.length, "recording gap", D.gaps.length ? "bad" : ""),
    );
    const bars = (target, rows, colour) => {
      const most = Math.max(1, ...rows.map((row) => row[1]));
      target.replaceChildren(...rows.map(([label, n]) => el("div", { class: "bar" }, el("span", { title: label }, label), el("i", { style: { width: `${(100 * n) / most}%`, background: colour(label) } }), el("b", {}, number(n)))));
      if (!rows.length) target.append(el("p", {}, "nothing"));
    };
    bars($("outcomes"), outcomes(), (label) => `var(${COLOUR[label] || "--p7"})`);
    const why = [];
    for (const job of D.jobs) {
      for (const pod of job.pods) if (pod[P.PHASE] === "Failed") why.push(`${pod[P.REASON] || "no reason"}${pod[P.EXIT] === null ? "" : `, exit code ${pod[P.EXIT]}`}`);
    }
    // What has no bar of its own is counted still: the bars add up to the failed pods.
    const ends = tally(why), rest = ends.slice(BARS).reduce((n, row) => n + row[1], 0);
    bars($("reasons"), rest ? [...ends.slice(0, BARS), [`${ends.length - BARS} other ends`, rest]] : ends, () => "var(--p6)");
  };

