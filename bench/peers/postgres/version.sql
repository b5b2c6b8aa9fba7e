-- Optimistic: read the version, change only if it is still the same. Who comes
-- too late changes nothing and tries again with the next transaction; only
-- successes are counted.
\set id random(1, :products)
SELECT version FROM products WHERE id = :id \gset
WITH taken AS (
    UPDATE products
    SET available = available - 1, reserved = reserved + 1,
        version = version + 1
    WHERE id = :id AND version = :version AND available >= 1
    RETURNING id)
INSERT INTO reservations (product_id, quantity, status, expires_at)
SELECT id, 1, 'PENDING', now() + interval '10 minutes' FROM taken;
