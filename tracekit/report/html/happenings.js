
  //// What happened in a time, and who changed what then: of the time that is measured, or else of what is seen

  const H = { AT: 0, KIND: 1, SPACE: 2, NAME: 3, WHAT: 4, WHO: 5, TROUBLE: 6, JOB: 7, CRON: 8 };
  const W = { AT: 0, KIND: 1, SPACE: 2, NAME: 3, RV: 4, VERB: 5, WHO: 6, FROM: 7, FIELDS: 8, MORE: 9, CODE: 10, MESSAGE: 11 };
  const AT_ONCE = 500;
  const NOBODY = "the record does not tell";
  const ns = (ms) => String(BigInt(D.start_ns) + BigInt(Math.round(ms * 1000)) * 1000n);
  const wanted = { troubles: false, who: null };
  const seen = () => state.range || [state.from, state.to];
  // Where all is seen, what came a moment before it is seen, too.
  const ends = () => { const [from, to] = seen(); return [from <= 0 ? -Infinity : from, to >= D.span_ms ? Infinity : to]; };
  const whole = async (name) => D[name] ?? (document.getElementById(`part-${name}`) ? partOf(name) : null);
  // The rows of that time and how many there are; null: the page has none.
  const rowsOf = async (name, values, keep) => {
    const [from, to] = ends();
    if (D.served) return ask(name, { from: from === -Infinity ? "" : ns(from), to: to === Infinity ? "" : ns(to), ...values });
    const all = await whole(name);
    if (!all) return null;
    const found = all.filter((row) => from <= row[0] && row[0] <= to && keep(row));
    return { rows: found, count: found.length };
  };
  const shortened = (ms) => rfc(ms).slice(0, 19) + "Z";
  const then = () => { const [from, to] = seen(); return ["--from", shortened(from), "--to", shortened(to + 1000)]; };
  const heading = (what) => { const [from, to] = seen(); return `${what}, ${clock(from, 1000)} to ${clock(to, 1000)}`; };
  const later = (found, shown) => found.until !== null && found.until !== undefined ? el("p", { class: "dim" }, `Told up to ${clock(found.until, 1)}${found.count > shown ? `, of ${number(found.count)} the first ${number(shown)}` : ""}: zoom in there for what came later.`) : found.count > shown ? el("p", { class: "dim" }, `${number(found.count - shown)} later ones are not shown: zoom in, or measure a shorter time.`) : null;
  const tooLarge = () => el("p", { class: "none" }, "This record is too large for a file to hold it. The command above prints it, and tracekit report --serve shows it here.");
  const where = (kind, space, name, job, cron) => {
    const label = [space, name].filter(Boolean).join("/"), goal = byKey.get(`${space}/${job}`) ? `#job=${encodeURIComponent(`${space}/${job}`)}` : cronByKey.get(`${space}/${cron}`) ? `#cron=${encodeURIComponent(`${space}/${cron}`)}` : null;
    return el("span", {}, kind ? `${kind} ` : "", goal ? el("a", { href: goal }, label) : label);
  };
  const when = (ms) => el("button", { type: "button", class: "at", title: `${both(ms)}: show on the timeline`, onclick: () => point(ms) }, clock(ms, 1));

  const happened = () => shown(rowsOf("happenings", { troubles: wanted.troubles ? "1" : "" }, (row) => !wanted.troubles || row[H.TROUBLE]), (found) => {
    const box = el("input", { type: "checkbox", onchange: (event) => { wanted.troubles = event.target.checked; happened(); } });
    box.checked = wanted.troubles;
    const rows = found ? found.rows.slice(0, AT_ONCE) : [];
    panel(heading("What happened"), command("timeline", D.trace, ...then(), ...(wanted.troubles ? ["--troubles"] : [])), found ? el("p", {}, el("label", {}, box, " only troubles")) : tooLarge(),
      found && !rows.length ? el("p", { class: "none" }, "Nothing happened then, as far as it was recorded.") : null,
      el("ol", { class: "account" }, ...rows.map((row) => el("li", { class: row[H.TROUBLE] ? "bad-step" : "" }, when(row[H.AT]), " ", where(row[H.KIND], row[H.SPACE], row[H.NAME], row[H.JOB], row[H.CRON]), row[H.NAME] ? ": " : "", row[H.WHAT], row[H.WHO] ? el("span", { class: "dim" }, `, by ${row[H.WHO]}`) : null))),
      found ? later(found, rows.length) : null);
  });
  const wrote = (name = wanted.who) => {
    wanted.who = name || null;
    return shown(rowsOf("writes", { actor: wanted.who }, () => true), (found) => {
      const actors = found ? found.actors || tally(found.rows.map((row) => row[W.WHO] || "")) : [];
      // A link may name one who wrote nothing.
      if (wanted.who && !actors.some(([actor]) => actor === wanted.who)) actors.push([wanted.who, 0]);
      const pick = el("select", { "aria-label": "Who", onchange: (event) => wrote(event.target.value === "*" ? null : event.target.value) }, el("option", { value: "*" }, `everybody (${number(actors.reduce((n, actor) => n + actor[1], 0))})`), ...actors.filter(([actor]) => actor).map(([actor, n]) => { const option = el("option", { value: actor }, `${actor} (${number(n)})`); option.selected = actor === wanted.who; return option; }));
      const mine = found ? found.rows.filter((row) => !wanted.who || row[W.WHO] === wanted.who) : [], rows = mine.slice(0, AT_ONCE);
      panel(heading("Who changed what"), command("who", D.trace, ...(wanted.who ? [wanted.who] : []), ...then()), found ? el("p", {}, pick) : tooLarge(),
        found && !rows.length ? el("p", { class: "none" }, `${wanted.who ? `${wanted.who} wrote nothing` : "Nobody wrote anything"} then, as far as it was recorded.`) : null,
        el("ol", { class: "account" }, ...rows.map((row) => el("li", { class: row[W.CODE] ? "bad-step" : "" }, when(row[W.AT]), " ", el("b", {}, row[W.WHO] || "somebody"), ` ${row[W.CODE] === null ? row[W.VERB] : `asked to ${row[W.VERB]}`} `, where(row[W.KIND], row[W.SPACE], row[W.NAME], row[W.NAME], row[W.NAME]), " ", el("span", { class: "dim" }, row[W.FROM] || NOBODY), row[W.CODE] === null ? null : el("div", { class: "bad" }, `${row[W.CODE]}: ${row[W.MESSAGE] || "no message"}`), row[W.FIELDS].length ? el("details", { class: "revision" }, el("summary", {}, count(row[W.FIELDS].length + row[W.MORE], "field")), table(["field", "before", "after"], row[W.FIELDS], "diff")) : null))),
        found ? later({ ...found, count: D.served ? found.count : mine.length }, rows.length) : null);
    });
  };

  //// A page that is served: what comes once the trace was judged, which part of the record it shows, and how to ask for another

  // The page shows it by itself, unless somebody has begun to read.
  const whenJudged = () => {
    if (!unjudged) return;
    let used = location.hash !== "";
    for (const kind of ["pointerdown", "keydown", "wheel"]) addEventListener(kind, () => { used = true; }, { once: true, passive: true });
    const look = async () => {
      const done = await ask("judged", {}).catch(() => null);
      if (!done) return void setTimeout(look, done === null ? 5000 : 500);
      if (!used) return void location.reload();
      $("finding-list").replaceChildren(el("p", { class: "none" }, "The record was judged. ", el("button", { type: "button", id: "judged", onclick: () => location.reload() }, "Show what was found")));
    };
    look();
  };
  const servedBy = () => {
    if (!D.served) return;
    const part = D.served.jobs > D.jobs.length, asked = D.served.asked;
    const whole = () => {
      const words = new URLSearchParams();
      if (state.from > 0 || state.to < D.span_ms) { words.set("from", ns(state.from)); words.set("to", ns(state.to)); }
      for (const [name, value] of [["namespace", state.namespace], ["words", state.text]]) if (value) words.set(name, value);
      location.search = String(words);
    };
    const said = Object.keys(asked).filter((name) => name !== "from" && name !== "to").map((name) => `${name} ${asked[name]}`);
    if (asked.from || asked.to) said.push("a part of its time");
    $("served").hidden = false;
    $("served").replaceChildren(part ? `Here: ${number(D.jobs.length)} of ${number(D.served.jobs)} Jobs, those in trouble first. ` : `Here: ${count(D.served.jobs, "Job")}${said.length ? ` (${said.join(", ")})` : ", all of the record"}. `,
      part || said.length ? "Zoom, choose a namespace or search, then " : "",
      part || said.length ? el("button", { type: "button", id: "again", onclick: whole }, "ask the record for it") : "",
      said.length ? el("span", {}, " or ", el("a", { href: location.pathname }, "show all of it")) : "");
  };
