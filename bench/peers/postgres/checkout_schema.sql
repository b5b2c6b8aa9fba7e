-- A checkout in one step: token bucket, fence, three products.
CREATE TABLE buyers (
    id     integer PRIMARY KEY,
    tokens double precision NOT NULL,
    time   timestamptz NOT NULL,
    used   bigint NOT NULL
) WITH (fillfactor = 70);
CREATE TABLE fences (name text PRIMARY KEY, token bigint NOT NULL);
CREATE TABLE shelf (
    id        integer PRIMARY KEY,
    available bigint NOT NULL CHECK (available >= 0)
) WITH (fillfactor = 70);

INSERT INTO fences VALUES ('shop', 1);
INSERT INTO shelf SELECT id, 1000000000 FROM generate_series(1, 100000) AS id;

-- Rows are locked in the order of their numbers, so that none wait in a circle.
CREATE OR REPLACE FUNCTION checkout(buyer integer, shown bigint, a integer,
                                    b integer, c integer)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    product integer;
BEGIN
    INSERT INTO buyers VALUES (buyer, 999, now(), 1)
    ON CONFLICT (id) DO UPDATE
    SET tokens = least(1000, buyers.tokens + 1000 * extract(epoch FROM
                       greatest(now() - buyers.time, interval '0'))) - 1,
        time = now(), used = buyers.used + 1
    WHERE least(1000, buyers.tokens + 1000 * extract(epoch FROM
                greatest(now() - buyers.time, interval '0'))) >= 1;
    IF NOT FOUND THEN RAISE EXCEPTION 'DENIED'; END IF;
    PERFORM 1 FROM fences WHERE name = 'shop' AND token <= shown;
    IF NOT FOUND THEN RAISE EXCEPTION 'STALE'; END IF;
    FOREACH product IN ARRAY ARRAY[least(a, b, c),
        a + b + c - least(a, b, c) - greatest(a, b, c), greatest(a, b, c)]
    LOOP
        UPDATE shelf SET available = available - 1
        WHERE id = product AND available >= 1;
        IF NOT FOUND THEN RAISE EXCEPTION 'SHORT'; END IF;
    END LOOP;
END
$$;
VACUUM ANALYZE shelf;
CHECKPOINT;
