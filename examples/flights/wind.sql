-- Flights that left New York in high wind: who built the plane, how old it was, how late it left.
-- Weather holds for the hour from its time on. One reading of 1,048 miles per hour is an error.
SELECT f.carrier, f.flight, f.origin, f.dest, f.ts AS departs, f.dep_delay,
       w.wind_speed,
       split_part(p.manufacturer, ' ', 1) AS maker,
       year(f.ts) - p.built AS age
FROM flights [RANGE 1 HOUR] AS f, weather [RANGE 1 HOUR] AS w, planes [UNBOUNDED] AS p
WHERE f.origin = w.origin
  AND f.tailnum = p.tailnum
  AND f.ts >= w.ts
  AND f.ts < w.ts + INTERVAL 1 HOUR
  AND w.wind_speed >= 25
  AND w.wind_speed < 100
  AND f.dep_delay IS NOT NULL
