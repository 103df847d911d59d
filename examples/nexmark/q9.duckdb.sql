-- An auction's end tells its one boundary, so there is no need to go through all of them.
WITH ended AS (
    SELECT *, to_timestamp((epoch_us(expires) + 4999999) // 5000000 * 5) AS window_end
    FROM auction
)
SELECT a.id, a.item_name, a.seller, a.category, a.reserve, a.expires,
       max(b.price) AS price, count(*) AS bids, window_end
FROM ended AS a JOIN bid AS b ON a.id = b.auction
WHERE b.ts >= a.ts AND b.ts <= a.expires
  AND a.ts >= window_end - INTERVAL 20 SECONDS
  AND b.ts >= window_end - INTERVAL 20 SECONDS
  AND window_end <= getvariable('watermark')
GROUP BY ALL
