-- What did the controllers do that their rules do not explain?
SELECT namespace, name, action, verdict, seen_at, subject, why
FROM divergences
ORDER BY seen_at
LIMIT 100
