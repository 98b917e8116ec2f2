  //// A what-if: causes first, then each Job's two courses above one another

  const VERDICTS = ["outcome", "pods", "timing", "fields", "uncalibrated", "unknowable", "same"];
  const BAD = { outcome: "error", pods: "error", timing: "warning", fields: "info", uncalibrated: "warning", unknowable: "info" };
  const L = { NAME: 0, INDEX: 1, SPANS: 2, ENDED: 3, AT: 4, EXIT: 5, REASON: 6 };
  const K = { DUE: 0, OUTCOME: 1, JOB: 2, STARTED: 3, WHY: 4 };
  const SHOWN = 10; // causes; the worst come first
  let now = D.targets[0];
  const percent = (part, whole) => `${Math.max(0, Math.min(100, (100 * part) / Math.max(1, whole)))}%`;
  const anchor = (thing) => `${thing.kind}-${thing.place}`;
  const paint = () => {
    $("title").textContent = `${D.from} → ${now.to}`;
    $("title").title = $("title").textContent;
    const settings = now.settings.length ? ` · with ${now.settings.join(", ")}` : "";
    const share = now.calibrated === null ? "" : ` · ${Math.round(100 * now.calibrated)} % of the Jobs that fork could be told`;
    $("subtitle").textContent = `${D.trace}${settings}${share}${now.draws > 1 ? ` · ${now.draws} draws` : ""}`;
    const tile = (n, label, kind) => el("div", { class: `tile ${kind}` }, el("b", {}, number(n)), el("span", {}, label));
    const kind = (verdict) => (verdict === "outcome" || verdict === "pods" ? "bad" : verdict === "same" ? "good" : "");
    const counted = (counts, noun) => VERDICTS.filter((verdict) => counts[verdict]).map((verdict) => tile(counts[verdict], `${noun}${counts[verdict] === 1 ? "" : "s"}: ${verdict}`, kind(verdict)));
    $("tiles").replaceChildren(...counted(now.counts, "Job"), ...counted(now.cronjob_counts, "CronJob"));
    causes(); cards(); rest();
  };

  //// Causes, worst class first

  const causes = () => {
    const boxes = now.causes.map((cause, place) => {
      const what = [cause.cronjobs ? count(cause.cronjobs, "CronJob") : "", cause.jobs ? count(cause.jobs, "Job") : ""].filter(Boolean).join(", ");
      const example = now.drawn.find((thing) => thing.key === cause.example && thing.verdict === cause.verdict);
      const box = el("details", { class: `finding ${BAD[cause.verdict]}${place < SHOWN ? "" : " extra"}` },
        el("summary", {}, el("span", { class: "severity" }, cause.verdict), el("span", { class: "text" }, cause.about || `${cause.kind} ${cause.name}`), el("span", { class: "since" }, what)),
        el("p", {}, `${cause.kind} `, el("b", {}, cause.name), cause.left ? `: ${cause.left} → ${cause.right}` : ""),
        cause.sure ? el("p", { class: "dim" }, cause.sure) : null,
        el("p", {}, "For example ", example ? el("a", { href: `#${anchor(example)}` }, cause.example) : el("b", {}, cause.example)),
        cause.keeps_old ? el("p", { class: "do" }, "As before with ", el("code", {}, cause.keeps_old)) : null,
        cause.reference ? el("p", { class: "links" }, el("a", { href: cause.reference, rel: "noreferrer noopener", target: "_blank" }, cause.reference.replace("https://github.com/", ""))) : null);
      if (place < 3) box.open = true;
      return box;
    });
    const list = $("causes");
    list.classList.remove("all");
    if (boxes.length > SHOWN) {
      const button = el("button", { type: "button", class: "more", onclick: () => { list.classList.add("all"); button.remove(); } }, `${boxes.length - SHOWN} more`);
      boxes.push(button);
    }
    list.replaceChildren(...(boxes.length ? boxes : [el("p", { class: "none" }, "Nothing: every Job and CronJob that could be told is the same.")]));
  };

  //// One card for each Job and CronJob that differs

  const cards = () => {
    $("courses-head").textContent = now.drawn.length ? `Courses (${number(now.drawn.length)}${now.left ? ` of ${number(now.drawn.length + now.left)}` : ""})` : "";
    $("cards").replaceChildren(...now.drawn.map((thing) => el("article", { class: `card ${thing.verdict}`, id: anchor(thing) },
      el("h3", {}, el("span", { class: "verdict" }, thing.verdict), el("span", {}, `${thing.kind} ${thing.key}`), el("span", { class: "dim" }, thing.how)),
      thing.why ? el("p", { class: "dim" }, thing.why) : null,
      ...thing.courses.map((course) => thing.kind === "Job" ? jobCourse(thing, course) : cronCourse(thing, course)),
      thing.kind === "Job" ? axis(["0 s", rounded(thing.span_ms / 2), rounded(thing.span_ms)]) : axis([0, 0.5, 1].map((share) => utc(thing.from_ms - START + share * thing.span_ms).slice(5, 19))),
      thing.because.length ? el("p", { class: "dim" }, `because of ${thing.because.join(", ")}`) : null,
      command("whatif", D.path, ...now.options, "--why", thing.key))));
  };
  const rounded = (ms) => seconds(ms < 60000 ? Math.round(ms / 100) / 10 : Math.round(ms / 1000));
  const axis = ([first, middle, last]) => el("div", { class: "axis" }, el("span", {}, first), el("span", { class: "middle" }, middle), el("span", {}, last));
  const told = (course) => el("div", { class: "told" }, el("b", {}, course.version), el("span", {}, course.text), course.model ? el("span", { class: "dim" }, course.model) : null);
  const jobCourse = (thing, course) => {
    const track = el("div", { class: "track" }), at = (ms) => percent(ms, thing.span_ms);
    for (const [from, until] of course.waits) track.append(el("span", { class: "wait", title: `no pod for ${seconds((until - from) / 1000)}`, style: { left: at(from), width: percent(until - from, thing.span_ms) } }));
    for (const lane of course.lanes) {
      const name = `${lane[L.NAME]}${lane[L.INDEX] === null ? "" : ` [${lane[L.INDEX]}]`}`;
      const row = el("div", { class: "lane" });
      for (const [phase, from, until] of lane[L.SPANS]) row.append(el("i", { title: `${name}: ${D.phases[phase]} for ${seconds((until - from) / 1000)}`, style: { left: at(from), width: percent(until - from, thing.span_ms), background: `var(--p${phase})` } }));
      if (lane[L.ENDED] !== null) row.append(el("i", { title: `${name}: ${D.phases[lane[L.ENDED]]}${lane[L.EXIT] === null ? "" : `, exit code ${lane[L.EXIT]}`}`, style: { left: `min(${at(lane[L.AT])}, calc(100% - 5px))`, width: "5px", background: `var(--p${lane[L.ENDED]})` } }));
      track.append(row);
    }
    if (course.end_ms !== null) track.append(el("span", { class: "end", title: course.text, style: { left: `min(${at(course.end_ms)}, calc(100% - 3px))`, background: course.ended === "Complete" ? "var(--p5)" : "var(--bad)" } }));
    return el("div", { class: "course" }, told(course), track, course.more ? el("span", { class: "dim" }, `and ${count(course.more, "pod")} more`) : null);
  };
  const cronCourse = (thing, course) => {
    const track = el("div", { class: "track ticks" });
    for (const tick of course.ticks) track.append(el("span", { class: "tick", title: `${utc(tick[K.DUE] - START).slice(0, 19)} ${tick[K.OUTCOME]}${tick[K.JOB] ? `: ${tick[K.JOB]}, ${seconds((tick[K.STARTED] - tick[K.DUE]) / 1000)} after it was due` : ""}${tick[K.WHY] ? `\n${tick[K.WHY]}` : ""}`, style: { left: `max(7px, min(${percent(tick[K.DUE] - thing.from_ms, thing.span_ms)}, calc(100% - 7px)))`, color: `var(${TICKS[tick[K.OUTCOME]]})` } }, SIGN[tick[K.OUTCOME]]));
    return el("div", { class: "course" }, told(course), track, course.more ? el("span", { class: "dim" }, `and ${count(course.more, "tick")} more`) : null);
  };
  const rest = () => {
    $("others-head").textContent = now.others.length ? `The others that are not the same (${number(now.others.length + now.others_left)})` : "";
    $("table").replaceChildren(...(now.others.length ? [table(["object", "class", "how", "recorded", "target", "because of"], now.others, "rest")] : []));
    if (now.others_left) $("table").append(el("p", { class: "dim" }, `and ${number(now.others_left)} more: -o json has them all`));
  };

  //// Hands

  const legend = () => {
    const key = (name, colour) => el("span", {}, el("i", { style: { background: colour } }), name);
    const sign = (outcome) => el("span", {}, el("span", { class: "sign", style: { color: `var(${TICKS[outcome]})` } }, SIGN[outcome]), outcome);
    $("keys").append(...D.phases.slice(0, 7).map((name, code) => key(name, `var(--p${code})`)), el("span", {}, el("i", { class: "hatch" }), "no pod"), key("Complete", "var(--p5)"), key("Job failed", "var(--bad)"), ...["started", "missed", "skipped"].map(sign));
  };
  const theme = () => { document.documentElement.dataset.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark"; };
  $("theme").addEventListener("click", theme);
  document.addEventListener("keydown", (event) => { if (event.key === "t" && !event.ctrlKey && !event.metaKey && !/^(INPUT|SELECT)$/.test(event.target.tagName)) theme(); });
  if (D.targets.length > 1) {
    $("target").append(...D.targets.map((one, place) => el("option", { value: place }, one.to)));
    $("target").hidden = false;
    $("target").addEventListener("change", (event) => { now = D.targets[Number(event.target.value)]; paint(); });
  }
  document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  legend(); paint();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
})();
