--- One row per holder of a Lease: who led, from when to when, and the pause before.
--@ trace | name of the trace | never
--@ namespace | the Lease's namespace | never
--@ lease | the Lease's name, for example kube-controller-manager | never
--@ holder | `.spec.holderIdentity` | given up: nobody held it
--@ acquired_at | `.spec.acquireTime`, UTC | absent in the object
--@ from_at | when this holder was first seen, UTC | no time was known yet
--@ until_at | when this holder was last seen | no time was known yet
--@ renewed_at | last `.spec.renewTime`, UTC | absent in the object
--@ renewals | revisions of the Lease with this holder | never
--@ transitions | `.spec.leaseTransitions` | absent in the object
--@ without_leader_s | from the last renewal of the holder before to this one's acquisition, seconds | the first holder seen
CREATE VIEW leaders AS
WITH
states AS (
  SELECT *, holder IS DISTINCT FROM lag(holder) OVER w
            OR lag(seq) OVER w IS NULL AS changes
  FROM internal._states
  WHERE stream = 'leases'
  WINDOW w AS (PARTITION BY trace, namespace, name ORDER BY _order, seq)
),
terms AS (
  SELECT *, sum(changes::INT) OVER (
    PARTITION BY trace, namespace, name ORDER BY _order, seq
  ) AS term
  FROM states
),
holders AS (
  SELECT trace, namespace, name AS lease, term, any_value(nullif(holder, '')) AS holder,
         min(acquire_ns) AS acquire_ns, min(recv_ns) AS from_ns, max(recv_ns) AS until_ns,
         max(renew_ns) AS renew_ns, count(DISTINCT rv) AS renewals,
         max(lease_transitions) AS transitions
  FROM terms
  GROUP BY trace, namespace, name, term
)
SELECT trace, namespace, lease, holder,
       utc(acquire_ns) AS acquired_at,
       utc(from_ns) AS from_at,
       utc(until_ns) AS until_at,
       utc(renew_ns) AS renewed_at,
       renewals,
       transitions,
       seconds_between(
         lag(renew_ns) OVER (PARTITION BY trace, namespace, lease ORDER BY term), acquire_ns
       ) AS without_leader_s
FROM holders;
