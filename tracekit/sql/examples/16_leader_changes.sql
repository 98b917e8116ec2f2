-- Did the controller manager change hands, and how long was there none?
SELECT lease, holder, acquired_at, renewed_at, renewals, round(without_leader_s, 1) AS without_leader_s
FROM leaders
ORDER BY lease, acquired_at
