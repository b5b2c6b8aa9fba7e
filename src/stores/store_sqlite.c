/* store_sqlite.c - a store in a SQLite file.
 *
 *   writer   one connection: BEGIN IMMEDIATE, a statement per change, COMMIT
 *   readers  a few connections; a thread takes one by its slot. In write-ahead
 *            mode each sees the last commit and waits for nobody
 *
 * Each connection has a lock of its own, and its statements are prepared once.
 * A database in memory belongs to one connection: there the writer reads, too.
 *
 * BEGIN IMMEDIATE takes the write lock at once, so that a batch never gets to
 * its middle and then finds another process writing. What fails is rolled back
 * before the call returns.
 */
#include <sqlite3.h>

#include "base/memory.h"
#include "base/thread.h"
#include "stores/store_ready.h"
#include "sync/mutex.h"

#define BUSY_MS_DEFAULT 5000u
#define SQL_BYTES       512

enum statement { BEGIN, PUT, REMOVE, COMMIT, ROLLBACK, GET, STATEMENTS };

/* The table's name stands between the two; without a second, there is none. */
static const struct {
    const char *before, *after;
} statement_sql[STATEMENTS] = {
    [BEGIN] = {"BEGIN IMMEDIATE", NULL},
    [PUT] = {"INSERT INTO ", " (key, value) VALUES (?1, ?2) ON CONFLICT (key) "
                             "DO UPDATE SET value = excluded.value"},
    [REMOVE] = {"DELETE FROM ", " WHERE key = ?1"},
    [COMMIT] = {"COMMIT", NULL},
    [ROLLBACK] = {"ROLLBACK", NULL},
    [GET] = {"SELECT value FROM ", " WHERE key = ?1"},
};

/* (i) immutable after open  (m) under the connection's mutex */
struct connection {
    _Alignas(HF_CACHE_LINE) struct hf_mutex mutex;
    sqlite3 *db;                         /* (m) */
    sqlite3_stmt *statement[STATEMENTS]; /* (m) */
};

struct store_sqlite {
    struct store_ready ready;
    struct hf_store_sqlite_opts opts; /* (i) its texts are not kept */
    struct connection *connections;   /* (i) the writer, then the readers */
    uint32_t count;                   /* (i) of connections */
};

/* ---- Errors. ---- */

/* What concerns the store as a whole may pass; what concerns this batch will
 * not. */
static enum hf_status status_of(int code)
{
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_DONE:
    case SQLITE_ROW:
        return HF_OK;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return HF_TIMEOUT;
    case SQLITE_FULL:
        return HF_FULL;
    case SQLITE_NOMEM:
        return HF_NOMEM;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_PROTOCOL:
    case SQLITE_READONLY:
    case SQLITE_INTERRUPT:
    case SQLITE_ABORT:
    case SQLITE_SCHEMA:
        return HF_IO;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return HF_CORRUPT;
    case SQLITE_ERROR: /* our statements do not change: the table is wrong */
        return HF_NOTFOUND;
    default:
        return HF_FAILED;
    }
}

/* ---- Statements. ---- */

/* Runs one to its end; the connection is locked. */
static int run(struct connection *connection, enum statement which)
{
    sqlite3_stmt *statement = connection->statement[which];

    int code = sqlite3_step(statement);
    (void)sqlite3_reset(statement); /* tells the same code once more */
    return code;
}

static int bind(sqlite3_stmt *statement, int at, const void *data, size_t len)
{
    /* NULL would be stored as NULL, which is no value. */
    return sqlite3_bind_blob64(statement, at, len == 0 ? "" : data, len,
                               SQLITE_STATIC);
}

static int change(struct connection *connection,
                  const struct hf_store_change *one)
{
    enum statement which = one->remove ? REMOVE : PUT;
    sqlite3_stmt *statement = connection->statement[which];

    int code = bind(statement, 1, one->key, one->key_len);
    if (code == SQLITE_OK && !one->remove)
        code = bind(statement, 2, one->value, one->value_len);
    return code == SQLITE_OK ? run(connection, which) : code;
}

/* ---- The calls of a store. ---- */

static int transact(struct connection *writer,
                    const struct hf_store_change *changes, size_t count)
{
    int code = run(writer, BEGIN);

    if (code != SQLITE_DONE)
        return code;
    for (size_t i = 0; i < count && code == SQLITE_DONE; i++)
        code = change(writer, &changes[i]);
    return code == SQLITE_DONE ? run(writer, COMMIT) : code;
}

static enum hf_status apply(void *context,
                            const struct hf_store_change *changes, size_t count,
                            char text[STORE_TEXT_BYTES])
{
    struct store_sqlite *store = context;
    struct connection *writer = &store->connections[0];

    hf_mutex_lock(&writer->mutex);
    enum hf_status status = status_of(transact(writer, changes, count));
    if (status != HF_OK) {
        snprintf(text, STORE_TEXT_BYTES, "%s", sqlite3_errmsg(writer->db));
        if (!sqlite3_get_autocommit(writer->db))
            (void)run(writer, ROLLBACK);
    }
    hf_mutex_unlock(&writer->mutex);
    return status;
}

static struct connection *my_reader(struct store_sqlite *store)
{
    uint32_t readers = store->count - 1;

    return readers == 0 ? &store->connections[0]
                        : &store->connections[1 + hf_thread_slot() % readers];
}

/* The value is copied: the user gets it outside the lock. */
static int get(struct connection *reader, const void *key, size_t key_len,
               struct store_value *value)
{
    sqlite3_stmt *statement = reader->statement[GET];

    int code = bind(statement, 1, key, key_len);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        const void *data = sqlite3_column_blob(statement, 0);
        value->len = (size_t)sqlite3_column_bytes(statement, 0);
        value->data = value->owner = hf_alloc(value->len + 1);
        if (value->owner == NULL)
            code = SQLITE_NOMEM;
        else if (value->len > 0 && data != NULL)
            memcpy(value->owner, data, value->len);
        else if (value->len > 0)
            code = SQLITE_NOMEM; /* what it says when it has no memory */
    }
    (void)sqlite3_reset(statement);
    return code;
}

static enum hf_status read_key(void *context, const void *key, size_t key_len,
                               struct store_value *value,
                               char text[STORE_TEXT_BYTES])
{
    struct connection *reader = my_reader(context);

    hf_mutex_lock(&reader->mutex);
    enum hf_status status = status_of(get(reader, key, key_len, value));
    if (status != HF_OK)
        snprintf(text, STORE_TEXT_BYTES, "%s", sqlite3_errmsg(reader->db));
    hf_mutex_unlock(&reader->mutex);
    if (status != HF_OK)
        hf_free(value->owner);
    return status;
}

/* ---- Opening and closing. ---- */

static void disconnect(struct connection *connection)
{
    for (int i = 0; i < STATEMENTS; i++)
        (void)sqlite3_finalize(connection->statement[i]);
    (void)sqlite3_close(connection->db);
}

static void close_store(void *context)
{
    struct store_sqlite *store = context;

    for (uint32_t i = store->count;
         i-- > 0;) /* the writer last: it cleans up */
        disconnect(&store->connections[i]);
    hf_free(store->connections);
    hf_free(store);
}

static int prepare(const struct store_sqlite *store,
                   struct connection *connection, enum statement which)
{
    const char *before = statement_sql[which].before;
    const char *after = statement_sql[which].after;
    char sql[SQL_BYTES];

    if (after == NULL)
        (void)snprintf(sql, sizeof sql, "%s", before);
    else
        (void)snprintf(sql, sizeof sql, "%s\"%s\"%s", before,
                       store->ready.table, after);
    return sqlite3_prepare_v3(connection->db, sql, -1,
                              SQLITE_PREPARE_PERSISTENT,
                              &connection->statement[which], NULL);
}

static int set_up_writer(const struct store_sqlite *store,
                         struct connection *writer)
{
    char sql[SQL_BYTES];

    (void)snprintf(sql, sizeof sql,
                   "PRAGMA journal_mode=WAL; PRAGMA synchronous=%s; "
                   "CREATE TABLE IF NOT EXISTS \"%s\" "
                   "(key BLOB PRIMARY KEY NOT NULL, value BLOB NOT NULL) "
                   "WITHOUT ROWID",
                   store->opts.relaxed ? "NORMAL" : "FULL", store->ready.table);
    return sqlite3_exec(writer->db, sql, NULL, NULL, NULL);
}

static enum hf_status connect_one(struct store_sqlite *store,
                                  struct connection *connection, bool writer)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE |
                (writer ? SQLITE_OPEN_CREATE : 0);
    int code = sqlite3_open_v2(store->opts.path, &connection->db, flags, NULL);

    if (code == SQLITE_OK)
        code = sqlite3_busy_timeout(connection->db, (int)store->opts.busy_ms);
    if (code == SQLITE_OK && writer)
        code = set_up_writer(store, connection);
    for (int i = 0; i < STATEMENTS && code == SQLITE_OK; i++)
        if (writer || i == GET)
            code = prepare(store, connection, (enum statement)i);
    enum hf_status status = status_of(code);
    if (status == HF_CORRUPT || status == HF_NOTFOUND)
        status = HF_FAILED;
    if (status != HF_OK)
        (void)hf_store_ready_fail(&store->ready, status,
                                  connection->db == NULL
                                      ? sqlite3_errstr(code)
                                      : sqlite3_errmsg(connection->db));
    return status;
}

/* Fills in the defaults; false: a field is out of its range. */
static bool complete(struct store_sqlite *store)
{
    struct hf_store_sqlite_opts *opts = &store->opts;

    if (opts->path == NULL || opts->busy_ms > INT32_MAX ||
        !hf_store_ready_init(&store->ready, opts->table, opts->readers))
        return false;
    if (opts->busy_ms == 0)
        opts->busy_ms = BUSY_MS_DEFAULT;
    if (opts->path[0] == 0 || strcmp(opts->path, ":memory:") == 0)
        store->ready.readers = 0;
    return true;
}

static enum hf_status connect_all(void *context)
{
    struct store_sqlite *store = context;
    size_t bytes = (1 + store->ready.readers) * sizeof *store->connections;
    enum hf_status status = HF_OK;

    store->connections = hf_alloc_lines(bytes);
    if (store->connections == NULL)
        return HF_NOMEM;
    while (status == HF_OK && store->count <= store->ready.readers) {
        struct connection *next = &store->connections[store->count++];
        status = connect_one(store, next, store->count == 1);
    }
    return status;
}

static const struct store_kind kind = {
    .apply = apply, .read = read_key, .forget = hf_free, .close = close_store};

enum hf_status hf_store_sqlite_open(struct hf_store *out,
                                    const struct hf_store_sqlite_opts *opts)
{
    if (out == NULL || opts == NULL)
        return HF_INVALID;
    struct store_sqlite *store = hf_alloc_zeroed(sizeof *store);
    if (store == NULL)
        return HF_NOMEM;
    store->opts = *opts;
    store->ready.kind = &kind;
    store->ready.failed = opts->failed;
    store->ready.context = opts->context;
    if (!complete(store)) {
        hf_free(store);
        return HF_INVALID;
    }
    return hf_store_ready_open(&store->ready, opts->name, connect_all, out);
}
