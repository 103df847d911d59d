-- A flight's hour names its weather, so no windows are needed: planes are older than all flights.
SELECT f.carrier, f.flight, f.origin, f.dest, f.ts AS departs, f.dep_delay,
       w.wind_speed,
       split_part(p.manufacturer, ' ', 1) AS maker,
       year(f.ts) - p.built AS age
FROM flights AS f
JOIN weather AS w ON f.origin = w.origin AND date_trunc('hour', f.ts) = w.ts
JOIN planes AS p ON f.tailnum = p.tailnum
WHERE w.wind_speed >= 25 AND w.wind_speed < 100
  AND f.dep_delay IS NOT NULL
