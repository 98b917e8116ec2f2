--- One row per time in which a stream was seen: only there and then nothing is proof of absence.
--- A list without a watch is one look, with an instant. Before the first list and after the last
--- look nothing is known.
--@ trace | name of the trace | never
--@ stream | plural resource, for example `pods` | never
--@ scope | what was asked for, in words | never
--@ namespaces | the namespaces that were asked for; empty: nobody knows, and nothing is covered | all of them
--@ selector | the label or field selector; what it leaves out is not covered | none
--@ from_at | from when on absence would have been seen, UTC | a look of which nothing tells the time
--@ until_at | until when, UTC | the same
--@ is_look | whether it has one instant only: a look, or a watch whose rows all have one time | never
CREATE VIEW coverage AS
SELECT trace, stream, scope, namespaces, selector, utc(nullif(from_ns, 0)) AS from_at,
       utc(nullif(until_ns, 0)) AS until_at,
       from_ns = until_ns AS is_look
FROM internal._coverage
ORDER BY stream, from_ns, scope;
