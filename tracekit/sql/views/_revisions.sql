--- States in their order, each once, with the state before it in `p`; what changes derive from.
CREATE VIEW internal._revisions AS
SELECT *,
       lag({
         'rv': rv, 'generation': generation, 'spec': spec, 'labels': labels,
         'annotations': annotations, 'finalizers': finalizers, 'owner_uid': owner_uid, 'job': job,
         'deleted_ns': deleted_ns, 'managers': managers, 'conditions': conditions,
         'start_ns': start_ns, 'active': active, 'ready': ready, 'succeeded': succeeded,
         'failed': failed, 'terminating': terminating, 'completion_ns': completion_ns,
         'completed_indexes': completed_indexes, 'failed_indexes': failed_indexes,
         'uncounted_succeeded': uncounted_succeeded, 'uncounted_failed': uncounted_failed,
         'observed_status': observed_status, 'cron_active': cron_active,
         'last_schedule_ns': last_schedule_ns, 'last_successful_ns': last_successful_ns
       }) OVER w AS p
FROM internal._states
WINDOW w AS (PARTITION BY trace, stream, namespace, name, uid ORDER BY _order, seq);
