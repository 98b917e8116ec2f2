CREATE MACRO utc(ns) AS make_timestamp(ns // 1000);

--- trace_end(): when the last row of the traces was received (UTC): the end of what is known.
CREATE MACRO trace_end() AS (SELECT make_timestamp(max(trace_end_ns) // 1000) FROM internal._ends);

-- Which controller a user is that deleted something: NULL for any of the controller manager's.
CREATE MACRO deleter_of(user_name) AS (
  CASE WHEN user_name = 'system:kube-scheduler' THEN 'kube-scheduler'
       WHEN user_name = 'system:kube-controller-manager' THEN NULL
       WHEN starts_with(user_name, 'system:serviceaccount:kube-system:') THEN
         CASE split_part(user_name, ':', 4)
           WHEN 'generic-garbage-collector' THEN 'garbage-collector'
           WHEN 'node-controller' THEN 'taint-eviction-controller'
           WHEN 'job-controller' THEN 'job-controller'
           WHEN 'cronjob-controller' THEN 'cronjob-controller'
           WHEN 'ttl-after-finished-controller' THEN 'ttl-after-finished-controller'
           WHEN 'namespace-controller' THEN 'namespace-controller'
           WHEN 'pod-garbage-collector' THEN 'pod-garbage-collector'
           WHEN 'taint-eviction-controller' THEN 'taint-eviction-controller'
           ELSE 'user'
         END
       ELSE CASE WHEN user_name IS NOT NULL THEN 'user' END
  END
);

CREATE MACRO seconds_between(from_ns, until_ns) AS (until_ns - from_ns) / 1e9;

-- By receipt where both ends were watched, else between the API's whole seconds.
CREATE MACRO waited_s(from_seen_ns, until_seen_ns, from_ns, until_ns) AS (
  CASE WHEN until_ns IS NULL THEN NULL
       WHEN until_seen_ns > from_seen_ns THEN (until_seen_ns - from_seen_ns) / 1e9
       ELSE (until_ns - from_ns) / 1e9 END
);

-- `1,3-5` as the status writes sets of completion indexes.
CREATE MACRO holds_index(indexes, i) AS (
  list_bool_or(list_transform(
    string_split(indexes, ','),
    lambda part: i BETWEEN try_cast(split_part(part, '-', 1) AS BIGINT)
      AND coalesce(try_cast(nullif(split_part(part, '-', 2), '') AS BIGINT),
                   try_cast(part AS BIGINT))
  ))
);

-- A quantity of the API, like 250m, 1.5, 64Mi or 1e3, as a number.
CREATE MACRO quantity(amount) AS (
  try_cast(regexp_extract(amount, '^([+-]?[0-9.]+([eE][+-]?[0-9]+)?)([numkMGTPE]|[KMGTPE]i)?$', 1)
           AS DOUBLE)
  * CASE regexp_extract(amount, '([A-Za-z]*)$', 1)
      WHEN 'n' THEN 1e-9 WHEN 'u' THEN 1e-6 WHEN 'm' THEN 1e-3 WHEN 'k' THEN 1e3
      WHEN 'M' THEN 1e6 WHEN 'G' THEN 1e9 WHEN 'T' THEN 1e12 WHEN 'P' THEN 1e15 WHEN 'E' THEN 1e18
      WHEN 'Ki' THEN 1024.0 WHEN 'Mi' THEN 1024.0 ** 2 WHEN 'Gi' THEN 1024.0 ** 3
      WHEN 'Ti' THEN 1024.0 ** 4 WHEN 'Pi' THEN 1024.0 ** 5 WHEN 'Ei' THEN 1024.0 ** 6
      ELSE 1 END
);

-- Of each init container what it requests, and whether it stays (restartPolicy Always).
CREATE MACRO init_requests(spec, resource) AS (
  list_transform(json_extract(spec, '$.initContainers[*]'), lambda c: {
    'amount': coalesce(quantity(c->>('$.resources.requests."' || resource || '"')), 0),
    'stays': coalesce(c->>'$.restartPolicy', '') = 'Always'
  })
);

-- What a pod requests as the scheduler counts it: at pod level where it says so; else the regular
-- and staying containers together, or an init container with those that stay before it, whichever
-- is more; and the overhead of its runtime class. NULL: nothing is requested.
CREATE MACRO requested(spec, resource) AS (
  -- One element, so that what is needed several times stands once: DuckDB plans each anew.
  list_transform(
    [{'whole': quantity(spec->>('$.resources.requests."' || resource || '"')),
      'regular': list_sum(list_transform(
        json_extract(spec, '$.containers[*]'),
        lambda c: quantity(c->>('$.resources.requests."' || resource || '"')))),
      'init': init_requests(spec, resource),
      'overhead': quantity(spec->>('$.overhead."' || resource || '"'))}],
    lambda r: nullif(coalesce(
      r.whole,
      greatest(
        coalesce(r.regular, 0) + coalesce(list_sum(list_transform(
          list_filter(r.init, lambda c: c.stays), lambda c: c.amount)), 0),
        coalesce(list_max(list_transform(
          r.init,
          lambda c, i: c.amount + coalesce(list_sum(list_transform(
            list_filter(r.init[1:i - 1], lambda b: b.stays), lambda b: b.amount)), 0))), 0)
      )
    ) + coalesce(r.overhead, 0), 0)
  )[1]
);

-- Of the terminated regular containers that which ended with an error first, else one that ended
-- well: its exit code, signal and reason. What is killed afterwards is not what failed. ~ turns the
-- order of codes as - does, of the least number too.
CREATE MACRO failing_exit(containers) AS (
  list_min(list_transform(
    list_filter(containers, lambda c: c.state = 'terminated' AND NOT coalesce(c.init, false)),
    lambda c: {'well': coalesce(c.exit_code, 0) = 0, 'at': coalesce(c.finished_ns, 0),
               'less': ~coalesce(c.exit_code, 0),
               'exit_code': c.exit_code, 'signal': c.signal, 'reason': c.reason}
  ))
);

-- The termination message of that container, out of the raw object: it has no column.
CREATE MACRO failing_message(raw) AS (
  nullif(list_min(list_transform(
    list_filter(json_extract(try_cast(raw AS JSON), '$.status.containerStatuses[*].state.terminated'),
                lambda t: t IS NOT NULL),
    lambda t: {'well': coalesce(try_cast(t->>'$.exitCode' AS BIGINT), 0) = 0,
               'at': coalesce(t->>'$.finishedAt', ''),
               'less': ~coalesce(try_cast(t->>'$.exitCode' AS BIGINT), 0),
               'message': coalesce(t->>'$.message', '')}
  )).message, '')
);

CREATE MACRO last_finish_ns(containers) AS (
  list_max(list_transform(
    list_filter(containers, lambda c: c.state = 'terminated' AND NOT coalesce(c.init, false)),
    lambda c: c.finished_ns
  ))
);

CREATE MACRO finished_condition(conditions) AS (
  list_filter(conditions, lambda c: c.status = 'True' AND c.type IN ('Complete', 'Failed'))[1]
);

-- The condition by which the controller wants no pods to run any more.
CREATE MACRO ending_condition(conditions) AS (
  list_filter(conditions, lambda c: c.status = 'True'
              AND c.type IN ('Failed', 'FailureTarget', 'Complete', 'SuccessCriteriaMet'))[1]
);

CREATE MACRO condition_text(c) AS (
  c.type || CASE WHEN coalesce(c.reason, '') = '' THEN '' ELSE ' (' || c.reason || ')' END
);

CREATE MACRO finished_ns(completion_ns, finish) AS (
  CASE WHEN finish IS NOT NULL THEN coalesce(completion_ns, finish.last_transition_ns) END
);

CREATE MACRO true_conditions(conditions) AS (
  list_transform(
    list_filter(conditions, lambda c: c.status = 'True'),
    lambda c: c.type || CASE WHEN coalesce(c.reason, '') = '' THEN '' ELSE '(' || c.reason || ')' END
  )
);

CREATE MACRO changed_number(field, before, now, first) AS (
  CASE WHEN coalesce(before, 0) IS DISTINCT FROM coalesce(now, 0)
       THEN field || ' ' || coalesce(before, 0) || ' → ' || coalesce(now, 0) END
);

-- The manager of the entry that is new or newer than before; managedFields keep whole seconds, so
-- a second write by one manager within a second cannot be told from them.
CREATE MACRO new_manager(managers, before) AS (
  list_transform(
    list_filter(managers, lambda m: coalesce(NOT list_contains(before, m), true)),
    lambda m: m.manager
  )[-1]
);

CREATE MACRO is_controller_manager(manager) AS manager IN (
  'kube-controller-manager', 'hyperkube', 'k3s', 'rke2', 'kubelite', 'controller-manager',
  'cluster-policy-controller'
);

-- The manager with the newest managedFields entry for a subresource ('': for the object itself).
-- Most objects have one entry, or one of each: for these nothing is sorted.
CREATE MACRO newest_manager(managers, subresource_name) AS (
  CASE
    WHEN len(managers) = 1 THEN
      CASE WHEN coalesce(managers[1].subresource, '') = subresource_name
           THEN managers[1].manager END
    WHEN len(managers) = 2
      AND coalesce(managers[1].subresource, '') <> coalesce(managers[2].subresource, '') THEN
      CASE subresource_name
        WHEN coalesce(managers[1].subresource, '') THEN managers[1].manager
        WHEN coalesce(managers[2].subresource, '') THEN managers[2].manager
      END
    ELSE list_max(list_transform(
      list_filter(managers, lambda m: coalesce(m.subresource, '') = subresource_name),
      lambda m: {'written': m.time_ns, 'manager': m.manager}
    ))['manager']
  END
);
