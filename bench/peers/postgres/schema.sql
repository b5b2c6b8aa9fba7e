-- The usual tables of a shop, with no index that the flow does not need:
-- products by id, reservations by id, and the pending ones by when they expire.
CREATE TABLE products (
    id        integer PRIMARY KEY,
    available bigint NOT NULL CHECK (available >= 0),
    reserved  bigint NOT NULL CHECK (reserved >= 0),
    sold      bigint NOT NULL CHECK (sold >= 0),
    version   bigint NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE reservations (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id integer NOT NULL,
    quantity   bigint NOT NULL,
    status     text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX reservations_due ON reservations (expires_at)
    WHERE status = 'PENDING';

INSERT INTO products
SELECT id, 1000000000, 0, 0, 0 FROM generate_series(1, 100000) AS id;
VACUUM ANALYZE products;
CHECKPOINT;
