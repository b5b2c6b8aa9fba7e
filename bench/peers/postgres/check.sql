-- Successful reservations, and whether the sums agree: as many units reserved
-- as there are in reservations, product by product, and no unit lost.
SELECT (SELECT count(*) FROM reservations),
       (SELECT count(*)
        FROM products AS p
        LEFT JOIN (SELECT product_id, sum(quantity) AS units
                   FROM reservations GROUP BY product_id) AS r
               ON r.product_id = p.id
        WHERE p.reserved <> coalesce(r.units, 0)
           OR p.available + p.reserved + p.sold <> 1000000000);
