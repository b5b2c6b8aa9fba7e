/* stock_sql.c - the statements. See stock_sql.h.
 *
 * Locks are always taken in the order of the skus, ids inserted in their order,
 * and the former before the latter, so that no two transactions wait for each
 * other. The row of a reservation needs no lock: whoever changes it has those
 * of its products, of which it has one at least.
 *
 * How a commit ended whose answer was lost stands in the row that each
 * connection has in `writers`: the last transaction of a batch is its number.
 * (Without that row SQL_MARK fails: a division by zero.)
 * Whoever asks fences the row first, so that what is still under way fails.
 * (Numbers of transactions would not do: after a crash the server may give one
 * of them to another.) A row whose session has ended is kept for an hour from
 * when that was seen: somebody may still ask.
 *
 * Rows may have been waited for since it was decided that a reservation is not
 * over: what changes it looks again.
 *
 * A clock that moves cannot be compared by an index: it stands in a subquery,
 * which is carried out once.
 */
#include "stores/stock_sql.h"

#define PRODUCTS                                              \
    "SELECT sku::text, available::bigint, reserved::bigint, " \
    "sold::bigint, version::bigint FROM products "            \
    "WHERE sku = ANY ($1::text[] || ARRAY("                   \
    "SELECT sku FROM items WHERE reservation = ANY ($2::text[]))) "
#define OVERDUE \
    "r.status = 'PENDING' AND r.expires <= (SELECT clock_timestamp()) "

const char *const hf_stock_sql[SQL_COUNT] = {
    [SQL_BEGIN] = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_LOCK] = PRODUCTS "ORDER BY sku FOR UPDATE",
    [SQL_LOCK_FREE] = PRODUCTS "ORDER BY sku FOR UPDATE SKIP LOCKED",
    [SQL_READ] = PRODUCTS,
    [SQL_LOCK_ONLY] =
        "SELECT count(*) FROM (SELECT sku FROM products "
        "WHERE sku = ANY ($1::text[]) ORDER BY sku FOR UPDATE) AS held",
    [SQL_BOOKINGS] =
        "SELECT id::text, status::text, micros(expires) FROM reservations "
        "WHERE id = ANY ($1::text[])",
    [SQL_LINES] = "SELECT reservation::text, sku::text, quantity::bigint "
                  "FROM items "
                  "WHERE reservation = ANY ($1::text[]) "
                  "ORDER BY reservation, sku",
    [SQL_NOW] = "SELECT micros(clock_timestamp())",
    [SQL_UPDATE] =
        "WITH done AS (UPDATE products AS p SET available = d.available, "
        "reserved = d.reserved, sold = d.sold, "
        "total = d.available + d.reserved + d.sold, version = d.version, "
        "updated_at = clock_timestamp() "
        "FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], "
        "$5::bigint[], $6::bigint[]) "
        "AS d (sku, read, available, reserved, sold, version) "
        "WHERE p.sku = d.sku AND p.version = d.read RETURNING 1) "
        "SELECT expect(count(*), cardinality($1)) FROM done",
    [SQL_INSERT] =
        "INSERT INTO products (sku, available, reserved, sold, total, version) "
        "SELECT sku, available, reserved, sold, available + reserved + sold, "
        "version FROM unnest($1::text[], $2::bigint[], $3::bigint[], "
        "$4::bigint[], $5::bigint[]) "
        "AS d (sku, available, reserved, sold, version) ORDER BY sku COLLATE "
        "\"C\"",
    [SQL_DELETE] = "WITH done AS (DELETE FROM products AS p "
                   "USING unnest($1::text[], $2::bigint[]) AS d (sku, read) "
                   "WHERE p.sku = d.sku AND p.version = d.read RETURNING 1) "
                   "SELECT expect(count(*), cardinality($1)) FROM done",
    [SQL_BOOK] =
        "INSERT INTO reservations (id, status, created, expires, ended) "
        "SELECT id, status, instant(now), instant(expires), "
        "CASE WHEN status <> 'PENDING' THEN instant(now) END "
        "FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) "
        "AS d (id, status, now, expires) ORDER BY id COLLATE \"C\"",
    [SQL_LIST] = "INSERT INTO items (reservation, sku, quantity) "
                 "SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])",
    [SQL_REBOOK] =
        "WITH done AS (UPDATE reservations AS r SET status = d.status, "
        "expires = instant(d.expires), ended = "
        "CASE WHEN d.status <> 'PENDING' THEN instant(d.now) END "
        "FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], "
        "$5::bigint[]) AS d (id, status, now, expires, read) "
        "WHERE r.id = d.id AND r.status = 'PENDING' "
        "AND r.expires = instant(d.read) "
        "AND (d.status = 'EXPIRED' OR r.expires > clock_timestamp()) "
        "RETURNING 1) "
        "SELECT expect(count(*), cardinality($1)) FROM done",
    [SQL_TELL] = "INSERT INTO outbox (event, name, units) "
                 "SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])",
    [SQL_TAKE] =
        "WITH want AS (SELECT * FROM unnest($1::text[], $2::bigint[], "
        "$3::bigint[]) AS w (sku, units, times)), "
        "held AS MATERIALIZED (SELECT sku, available FROM products "
        "WHERE sku = ANY ($1) ORDER BY sku FOR UPDATE), "
        "go AS MATERIALIZED (SELECT clock_timestamp() AS now, ("
        "SELECT count(*) FROM held JOIN want USING (sku) "
        "WHERE available >= units) = cardinality($1) AND NOT EXISTS ("
        "SELECT FROM reservations WHERE id = ANY ($4::text[])) AS ok), "
        "taken AS (UPDATE products AS p SET available = p.available - units, "
        "reserved = p.reserved + units, version = p.version + times, "
        "updated_at = now FROM want, go "
        "WHERE ok AND p.sku = want.sku AND p.available >= units RETURNING 1), "
        "booked AS (INSERT INTO reservations (id, status, created, expires) "
        "SELECT id, 'PENDING', now, instant(micros(now) + ttl) "
        "FROM go, unnest($4, $5::bigint[]) AS r (id, ttl) WHERE ok "
        "ORDER BY id COLLATE \"C\"), "
        "listed AS (INSERT INTO items (reservation, sku, quantity) "
        "SELECT i.* FROM go, unnest($6::text[], $7::text[], $8::bigint[]) "
        "AS i WHERE ok), "
        "told AS (INSERT INTO outbox (event, name) SELECT 'reserved', id "
        "FROM go, unnest($9::text[]) AS t (id) WHERE ok) "
        "SELECT ok::int::bigint, CASE WHEN ok THEN expect("
        "(SELECT count(*) FROM taken), cardinality($1)) END FROM go",
    [SQL_OVERDUE] = "SELECT DISTINCT r.id FROM reservations AS r "
                    "JOIN items AS i ON i.reservation = r.id "
                    "WHERE " OVERDUE "AND i.sku = ANY ($1::text[]) LIMIT 1000",
    [SQL_DUE] = "SELECT id FROM reservations AS r WHERE " OVERDUE
                "ORDER BY expires LIMIT $1::bigint FOR UPDATE SKIP LOCKED",
    [SQL_GET] =
        "SELECT sku::text, available + late, reserved - late, sold::bigint, "
        "version::bigint "
        "FROM products AS p, LATERAL ("
        "SELECT coalesce(sum(quantity), 0)::bigint AS late "
        "FROM reservations AS r JOIN items AS i ON i.reservation = r.id "
        "WHERE " OVERDUE "AND i.sku = p.sku) AS l "
        "WHERE sku = ANY ($1::text[])",
    [SQL_LOOK] = "SELECT id::text, status::text, micros(expires), "
                 "micros((SELECT clock_timestamp())) FROM reservations "
                 "WHERE id = ANY ($1::text[])",
    [SQL_MARK] =
        "WITH done AS (UPDATE writers SET batch = $2::bigint "
        "WHERE id = $1::text::uuid AND batch = $2::bigint - 1 AND NOT fenced "
        "RETURNING 1) SELECT 1 / count(*) FROM done",
    [SQL_ENTER] =
        "WITH forgotten AS (DELETE FROM writers WHERE id IN ("
        "SELECT id FROM writers WHERE gone < now() - interval '1 hour' "
        "FOR UPDATE SKIP LOCKED)), "
        "missed AS (UPDATE writers SET gone = now() WHERE id IN ("
        "SELECT id FROM writers AS w WHERE gone IS NULL AND NOT EXISTS ("
        "SELECT FROM pg_stat_activity AS a WHERE a.pid = w.pid) "
        "FOR UPDATE SKIP LOCKED)) "
        "INSERT INTO writers (pid, started) SELECT pid, backend_start "
        "FROM pg_stat_activity WHERE pid = pg_backend_pid() "
        "RETURNING id::text",
    [SQL_LEAVE] = "DELETE FROM writers WHERE id = $1::text::uuid",
    [SQL_END_BACKEND] = "SELECT count(pg_terminate_backend(a.pid)) "
                        "FROM writers AS w JOIN pg_stat_activity AS a "
                        "ON a.pid = w.pid AND a.backend_start = w.started "
                        "WHERE w.id = $1::text::uuid",
    [SQL_FENCE] = "UPDATE writers SET fenced = true "
                  "WHERE id = $1::text::uuid RETURNING batch",
};

const char *const hf_stock_sql_names[SQL_COUNT] = {
    "begin",     "commit",      "rollback", "lock",   "lock_free", "read",
    "lock_only", "bookings",    "lines",    "now",    "update",    "insert",
    "delete",    "book",        "list",     "rebook", "tell",      "take",
    "overdue",   "due",         "get",      "look",   "mark",      "enter",
    "leave",     "end_backend", "fence",
};

const struct stock_migration hf_stock_migrations[STOCK_MIGRATIONS] = {
    {"CREATE TABLE products ("
     "sku text COLLATE \"C\" PRIMARY KEY, "
     "total bigint NOT NULL, "
     "available bigint NOT NULL CHECK (available >= 0), "
     "reserved bigint NOT NULL DEFAULT 0 CHECK (reserved >= 0), "
     "sold bigint NOT NULL DEFAULT 0 CHECK (sold >= 0), "
     "version bigint NOT NULL DEFAULT 1, "
     "updated_at timestamptz NOT NULL DEFAULT clock_timestamp(), "
     "CONSTRAINT products_sum CHECK (total = available + reserved + sold)"
     ") WITH (fillfactor = 70); "
     "CREATE TABLE reservations ("
     "id text COLLATE \"C\" PRIMARY KEY, "
     "status text NOT NULL CHECK (status IN "
     "('PENDING', 'CONFIRMED', 'CANCELLED', 'EXPIRED')), "
     "created timestamptz NOT NULL, "
     "expires timestamptz NOT NULL, "
     "ended timestamptz, "
     "reason text, "
     "group_name text, "
     "CONSTRAINT reservations_end "
     "CHECK ((status = 'PENDING') = (ended IS NULL))"
     ") WITH (fillfactor = 80); "
     "CREATE INDEX reservations_due ON reservations (expires) "
     "WHERE status = 'PENDING'; "
     "CREATE INDEX reservations_group ON reservations (group_name) "
     "WHERE group_name IS NOT NULL; "
     "CREATE TABLE items ("
     "reservation text COLLATE \"C\" NOT NULL "
     "REFERENCES reservations ON DELETE CASCADE, "
     "sku text COLLATE \"C\" NOT NULL, "
     "quantity bigint NOT NULL CHECK (quantity > 0), "
     "PRIMARY KEY (reservation, sku)); "
     "CREATE TABLE outbox ("
     "seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
     "at timestamptz NOT NULL DEFAULT clock_timestamp(), "
     "event text NOT NULL, "
     "name text NOT NULL, "
     "units bigint); "
     "CREATE TABLE writers ("
     "id uuid PRIMARY KEY DEFAULT gen_random_uuid(), "
     "pid int NOT NULL, "
     "started timestamptz NOT NULL, "
     "batch bigint NOT NULL DEFAULT 0, "
     "gone timestamptz, "
     "fenced boolean NOT NULL DEFAULT false) WITH (fillfactor = 20); "
     "CREATE FUNCTION instant(us bigint) RETURNS timestamptz "
     "LANGUAGE sql STABLE AS "
     "$$SELECT timestamptz 'epoch' + us / 1000000 * interval '1 second' "
     "+ us % 1000000 * interval '1 microsecond'$$; "
     "CREATE FUNCTION micros(at timestamptz) RETURNS bigint "
     "LANGUAGE sql STABLE AS "
     "$$SELECT (extract(epoch FROM at) * 1000000)::bigint$$; "
     "CREATE FUNCTION expect(met bigint, wanted bigint) RETURNS bigint "
     "LANGUAGE plpgsql AS $$BEGIN "
     "IF met <> wanted THEN RAISE EXCEPTION "
     "'holdfast: % of % rows were as they had been read', met, wanted "
     "USING ERRCODE = 'HF001'; END IF; RETURN met; END$$"},
};
