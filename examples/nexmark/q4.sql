-- Average price for a category, its inner half: the best price of each auction while it was open.
-- NEXMark then averages these by category, which would be an aggregate of aggregates.
SELECT a.category, a.id, max(b.price) AS final, avg(b.price) AS average, count(*) AS bids
FROM auction [RANGE 20 SECONDS SLIDE 5 SECONDS] AS a,
     bid [RANGE 20 SECONDS SLIDE 5 SECONDS] AS b
WHERE a.id = b.auction
  AND b.ts BETWEEN a.ts AND a.expires
GROUP BY a.category, a.id
