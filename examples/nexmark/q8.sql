-- Monitor new users: who offers something within ten seconds of coming?
SELECT p.id, p.name, a.id AS auction, a.reserve
FROM person [RANGE 10 SECONDS] AS p, auction [RANGE 10 SECONDS] AS a
WHERE p.id = a.seller
