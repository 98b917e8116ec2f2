--- Rows that are a state of an object, with `_order`: the order of an object's states.
CREATE VIEW internal._states AS
SELECT *, greatest(least(coalesce(rv, 0), 4611686018427387902), -4611686018427387904) * 2 + (type = 'DELETED')::BIGINT AS _order
FROM internal._rows
WHERE type IN ('LIST', 'ADDED', 'MODIFIED', 'DELETED');
