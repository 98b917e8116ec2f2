
  //// What is not there from the start: parts that lie packed in the page, or answers of the server that it came from

  const parts = new Map();
  const partOf = (name) => {
    if (!parts.has(name)) parts.set(name, held($(`part-${name}`)).then(JSON.parse));
    return parts.get(name);
  };
  const ask = async (what, values) => {
    const words = new URLSearchParams(Object.entries({ ...values, start: D.start_ns }).filter(([, value]) => value !== null && value !== undefined && value !== ""));
    const answer = await fetch(`${what}?${words}`).catch(() => { throw new Error("The server of this page does not answer: has tracekit report --serve ended?"); });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  };
  // In what is packed a number stands for how much it is more than the one before.
  const sums = (steps, start) => { let last = start; return steps.map((step) => step === null ? null : (last += step)); };
  const fromUs = (us) => us === null ? null : us / 1000;
  for (const job of D.jobs) {
    const us = Math.round((job.created ?? 0) * 1000);
    if (!job.writes) { job.writes = job.actions.map((action) => action[0]); continue; }
    job.writes = sums(job.writes, Math.floor(us / 1000));
    for (const pod of job.pods) {
      const flat = pod[P.SPANS], times = sums(flat.filter((_, place) => place % 3), us);
      pod[P.SPANS] = Array.from({ length: flat.length / 3 }, (_, place) => [flat[3 * place], fromUs(times[2 * place]), fromUs(times[2 * place + 1])]);
    }
  }
  // The account, revisions and writes of a Job.
  const detailed = async (job) => {
    if (job.history) return;
    const found = D.served ? await ask("job", { namespace: job.namespace, uid: job.job_uid }) : (await partOf(`jobs-${job.part[0]}`))[job.part[1]];
    if (job.history) return;
    const times = sums(found.actions.map((action) => action[0]), Math.round((job.created ?? 0) * 1000)), revisions = sums(found.actions.map((action) => action[4]), 0);
    job.actions = found.actions.map(([, what, target, actor], place) => [fromUs(times[place]), what, typeof target === "number" ? job.pods[target][P.NAME] : target, actor, revisions[place]]);
    Object.assign(D.pod_diffs, found.pod_diffs);
    for (const name of ["account", "history", "events", "logs"]) job[name] = found[name];
  };
