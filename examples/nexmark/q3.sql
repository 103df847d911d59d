-- Local item suggestion: who sells in Oregon, Idaho or California, in category 10, and what?
SELECT p.name, p.city, p.state, a.id
FROM auction [UNBOUNDED] AS a, person [UNBOUNDED] AS p
WHERE a.seller = p.id
  AND a.category = 10
  AND p.state IN ('OR', 'ID', 'CA')
