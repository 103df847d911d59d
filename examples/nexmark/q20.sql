-- Expand bid with auction: every bid for something in category 10, with all that is known of it.
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.ts AS bid_ts, b.extra AS bid_extra,
       a.item_name, a.description, a.initial_bid, a.reserve, a.ts AS auction_ts, a.expires,
       a.seller, a.category, a.extra AS auction_extra
FROM bid [UNBOUNDED] AS b, auction [UNBOUNDED] AS a
WHERE b.auction = a.id
  AND a.category = 10
