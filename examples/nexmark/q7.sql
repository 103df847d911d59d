-- Highest bid: every ten seconds the best bids of the last ten, here for each auction, of those
-- above 100,000.00. NEXMark asks for the best of all auctions: a join on no key at all.
SELECT b.auction, b.bidder, b.price
FROM bid [RANGE 10 SECONDS SLIDE 10 SECONDS] AS b,
     bid [RANGE 10 SECONDS SLIDE 10 SECONDS] AS rival
WHERE b.auction = rival.auction
  AND b.price > 10000000
  AND rival.price > 10000000
GROUP BY b.auction, b.bidder, b.price
HAVING b.price = max(rival.price)
