-- Which completion indexes needed more than one attempt?
SELECT namespace, job, index, max(attempt) AS attempts,
       list(exit_code ORDER BY attempt) AS exit_codes
FROM attempts
WHERE index IS NOT NULL
GROUP BY trace, namespace, job, job_uid, index
HAVING max(attempt) > 1
ORDER BY attempts DESC, namespace, job, index
LIMIT 100
