SELECT p.id, p.name, a.id AS auction, a.reserve
FROM person AS p JOIN auction AS a ON p.id = a.seller
WHERE greatest(p.ts, a.ts) - p.ts <= INTERVAL 10 SECONDS
  AND greatest(p.ts, a.ts) - a.ts <= INTERVAL 10 SECONDS
