-- Winning bids: what each auction went for, told once, at the first boundary after its end.
-- NEXMark also asks whose bid it was, which needs ranking.
SELECT a.id, a.item_name, a.seller, a.category, a.reserve, a.expires,
       max(b.price) AS price, count(*) AS bids
FROM auction [RANGE 20 SECONDS SLIDE 5 SECONDS] AS a,
     bid [RANGE 20 SECONDS SLIDE 5 SECONDS] AS b
WHERE a.id = b.auction
  AND b.ts BETWEEN a.ts AND a.expires
GROUP BY a.id, a.item_name, a.seller, a.category, a.reserve, a.expires
HAVING a.expires <= window_end AND a.expires > window_end - INTERVAL 5 SECONDS
