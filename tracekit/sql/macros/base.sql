CREATE MACRO utc(ns) AS make_timestamp(ns // 1000);

CREATE MACRO seconds_between(from_ns, until_ns) AS (until_ns - from_ns) / 1e9;

-- Of the terminated regular containers: the greatest exit code with its signal and reason.
CREATE MACRO worst_exit(containers) AS (
  list_max(list_transform(
    list_filter(containers, lambda c: c.state = 'terminated' AND NOT coalesce(c.init, false)),
    lambda c: {'exit_code': c.exit_code, 'signal': c.signal, 'reason': c.reason}
  ))
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
