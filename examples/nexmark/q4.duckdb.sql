WITH boundary AS (
    SELECT to_timestamp(unnest(generate_series(
        epoch_us(min(ts)) // 5000000 * 5, epoch_us(getvariable('watermark')) // 1000000, 5
    ))) AS window_end
    FROM auction
)
SELECT a.category, a.id, max(b.price) AS final, sum(b.price) / count(*) AS average,
       count(*) AS bids, window_end
FROM auction AS a JOIN bid AS b ON a.id = b.auction, boundary
WHERE b.ts >= a.ts AND b.ts <= a.expires
  AND a.ts BETWEEN window_end - INTERVAL 20 SECONDS AND window_end
  AND b.ts BETWEEN window_end - INTERVAL 20 SECONDS AND window_end
GROUP BY window_end, a.category, a.id
