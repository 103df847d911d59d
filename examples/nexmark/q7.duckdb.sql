WITH boundary AS (
    SELECT to_timestamp(unnest(generate_series(
        epoch_us(min(ts)) // 10000000 * 10, epoch_us(getvariable('watermark')) // 1000000, 10
    ))) AS window_end
    FROM bid
), lately AS (
    SELECT bid.*, window_end
    FROM bid, boundary
    WHERE price > 10000000
      AND ts BETWEEN window_end - INTERVAL 10 SECONDS AND window_end
)
SELECT DISTINCT auction, bidder, price, window_end
FROM lately
WHERE price = (
    SELECT max(best.price) FROM lately AS best
    WHERE best.auction = lately.auction AND best.window_end = lately.window_end
)
