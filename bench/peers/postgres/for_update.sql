-- Pessimistic: lock the row, look, change, record.
\set id random(1, :products)
BEGIN;
SELECT available FROM products WHERE id = :id FOR UPDATE \gset
\if :available > 0
UPDATE products
SET available = available - 1, reserved = reserved + 1, version = version + 1
WHERE id = :id;
INSERT INTO reservations (product_id, quantity, status, expires_at)
VALUES (:id, 1, 'PENDING', now() + interval '10 minutes');
\endif
COMMIT;
