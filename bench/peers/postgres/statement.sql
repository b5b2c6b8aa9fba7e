-- One statement: take if there is enough, and record.
\set id random(1, :products)
WITH taken AS (
    UPDATE products
    SET available = available - 1, reserved = reserved + 1,
        version = version + 1
    WHERE id = :id AND available >= 1
    RETURNING id)
INSERT INTO reservations (product_id, quantity, status, expires_at)
SELECT id, 1, 'PENDING', now() + interval '10 minutes' FROM taken
RETURNING id;
