/* store_postgres.c - a store in a PostgreSQL table.
 *
 * A batch is one statement, and so one transaction and one trip: the keys to
 * delete and the rows to put go as arrays.
 *
 *   WITH gone AS (DELETE ... WHERE key = ANY ($3))
 *   INSERT ... SELECT * FROM unnest($1, $2) ON CONFLICT (key) DO UPDATE ...
 *
 * Both parts see the table as it was before; a key comes once in a batch, so
 * they do not meet. An array of bytea in binary, numbers in network order:
 *
 *   u32 dimensions (1; 0: no element)   u32 has NULLs (0)   u32 type (17)
 *   u32 elements   u32 first index (1)
 *   then each: u32 length, its bytes
 *
 * A lock for each connection is held while it talks to the server.
 */
#include <arpa/inet.h>
#include <libpq-fe.h>
#include <sys/random.h>

#include "base/memory.h"
#include "base/thread.h"
#include "stores/store_postgres_link.h"
#include "sync/mutex.h"

#define TIMEOUT_MS_DEFAULT 10000u
#define SQL_BYTES          512
#define BYTEA_OID          17u

struct channel {
    _Alignas(HF_CACHE_LINE) struct hf_mutex mutex;
    struct store_link link;  /* (m) */
    struct hf_buf arrays[3]; /* (m) put keys, put values, deleted keys */
};

/* (i) immutable after open */
struct store_postgres {
    struct store_ready ready;
    struct hf_store_postgres_opts opts; /* (i) its texts are not kept */
    char *conninfo;                     /* (i) */
    char writer[HF_STORE_TABLE_BYTES];  /* (i) */
    char write_sql[SQL_BYTES];          /* (i) */
    char read_sql[SQL_BYTES];           /* (i) */
    struct channel *channels;           /* (i) the writer, then the readers */
    uint32_t count;                     /* (i) of channels */
};

/* A connection, or why not. */
static enum hf_status connect_to(struct store_postgres *store,
                                 struct channel *channel)
{
    bool again;
    enum hf_status status = hf_store_link_make(&channel->link, &again);

    if (again)
        store_count(&store->ready.reconnects, 1);
    return status;
}

/* ---- Arrays. ---- */

static void put_u32(struct hf_buf *out, uint32_t number)
{
    uint32_t net = htonl(number);

    memcpy(out->data + out->len, &net, sizeof net);
    out->len += sizeof net;
}

/* Room for `count` elements of `bytes` in all, and the head. */
static enum hf_status array_begin(struct hf_buf *out, size_t count,
                                  size_t bytes)
{
    out->len = 0;
    if (bytes + 4 * count + 20 > INT32_MAX)
        return HF_INVALID;
    if (hf_buf_reserve(out, bytes + 4 * count + 20) != HF_OK)
        return HF_NOMEM;
    put_u32(out, count > 0);
    put_u32(out, 0);
    put_u32(out, BYTEA_OID);
    if (count > 0) {
        put_u32(out, (uint32_t)count);
        put_u32(out, 1);
    }
    return HF_OK;
}

static void array_add(struct hf_buf *out, const void *data, size_t len)
{
    put_u32(out, (uint32_t)len);
    if (len > 0)
        memcpy(out->data + out->len, data, len);
    out->len += len;
}

static enum hf_status encode(struct channel *channel,
                             const struct hf_store_change *changes,
                             size_t count)
{
    struct hf_buf *arrays = channel->arrays;
    size_t puts = 0, key_bytes = 0, value_bytes = 0, gone_bytes = 0;
    enum hf_status status;

    for (size_t i = 0; i < count; i++) {
        puts += !changes[i].remove;
        *(changes[i].remove ? &gone_bytes : &key_bytes) += changes[i].key_len;
        value_bytes += changes[i].remove ? 0 : changes[i].value_len;
    }
    if ((status = array_begin(&arrays[0], puts, key_bytes)) != HF_OK ||
        (status = array_begin(&arrays[1], puts, value_bytes)) != HF_OK ||
        (status = array_begin(&arrays[2], count - puts, gone_bytes)) != HF_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        const struct hf_store_change *one = &changes[i];
        array_add(&arrays[one->remove ? 2 : 0], one->key, one->key_len);
        if (!one->remove)
            array_add(&arrays[1], one->value, one->value_len);
    }
    return HF_OK;
}

/* ---- The calls of a store. ---- */

static enum hf_status write_batch(struct store_postgres *store,
                                  struct channel *writer,
                                  const struct hf_store_change *changes,
                                  size_t count)
{
    const char *values[LINK_PARAMS_MAX];
    int lengths[LINK_PARAMS_MAX];
    PGresult *result;

    enum hf_status status = encode(writer, changes, count);
    if (status != HF_OK) {
        (void)snprintf(writer->link.text, sizeof writer->link.text, "%s",
                       hf_status_text(status));
        return status;
    }
    status = connect_to(store, writer);
    if (status != HF_OK)
        return status;
    for (int i = 0; i < LINK_PARAMS_MAX; i++) {
        values[i] = writer->arrays[i].data;
        lengths[i] = (int)writer->arrays[i].len;
    }
    status = hf_store_link_ask(&writer->link, values, lengths, &result);
    if (status == HF_OK)
        PQclear(result);
    return status;
}

static enum hf_status apply(void *context,
                            const struct hf_store_change *changes, size_t count,
                            char text[STORE_TEXT_BYTES])
{
    struct store_postgres *store = context;
    struct channel *writer = &store->channels[0];

    hf_mutex_lock(&writer->mutex);
    enum hf_status status = write_batch(store, writer, changes, count);
    memcpy(text, writer->link.text, STORE_TEXT_BYTES);
    hf_mutex_unlock(&writer->mutex);
    return status;
}

static struct channel *my_reader(struct store_postgres *store)
{
    return &store->channels[1 + hf_thread_slot() % (store->count - 1)];
}

static enum hf_status read_key(void *context, const void *key, size_t key_len,
                               struct store_value *value,
                               char text[STORE_TEXT_BYTES])
{
    struct channel *reader = my_reader(context);
    const char *values[] = {key};
    const int lengths[] = {(int)key_len};
    PGresult *result = NULL;

    hf_mutex_lock(&reader->mutex);
    enum hf_status status = connect_to(context, reader);
    if (status == HF_OK)
        status = hf_store_link_ask(&reader->link, values, lengths, &result);
    memcpy(text, reader->link.text, STORE_TEXT_BYTES);
    hf_mutex_unlock(&reader->mutex);
    if (status == HF_OK && PQntuples(result) > 0)
        *value = (struct store_value){.data = PQgetvalue(result, 0, 0),
                                      .len = (size_t)PQgetlength(result, 0, 0),
                                      .owner = result};
    else if (status == HF_OK)
        PQclear(result);
    return status;
}

static void forget(void *result)
{
    PQclear(result);
}

/* ---- Opening and closing. ---- */

static void close_store(void *context)
{
    struct store_postgres *store = context;

    for (uint32_t i = 0; i < store->count; i++) {
        hf_store_link_destroy(&store->channels[i].link);
        for (int j = 0; j < 3; j++)
            hf_buf_destroy(&store->channels[i].arrays[j]);
    }
    hf_free(store->channels);
    hf_free(store->conninfo);
    hf_free(store);
}

/* One that no other has, unless it is given. */
static bool set_writer(struct store_postgres *store, const char *writer)
{
    uint64_t number = (uint64_t)(uintptr_t)store;

    if (writer != NULL) {
        size_t len = strlen(writer);
        if (len == 0 || len >= sizeof store->writer)
            return false;
        memcpy(store->writer, writer, len + 1);
        return true;
    }
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        number ^= hf_clock_now_ns(hf_clock_system());
    (void)snprintf(store->writer, sizeof store->writer, "holdfast-%016llx",
                   (unsigned long long)number);
    return true;
}

/* Fills in the defaults; false: a field is out of its range. */
static bool complete(struct store_postgres *store)
{
    struct hf_store_postgres_opts *opts = &store->opts;

    if (opts->conninfo == NULL || opts->timeout_ms > INT32_MAX ||
        !hf_store_ready_init(&store->ready, opts->table, opts->readers) ||
        !set_writer(store, opts->writer))
        return false;
    if (opts->timeout_ms == 0)
        opts->timeout_ms = TIMEOUT_MS_DEFAULT;
    (void)snprintf(store->write_sql, sizeof store->write_sql,
                   "WITH gone AS (DELETE FROM \"%s\" "
                   "WHERE key = ANY ($3::bytea[])) "
                   "INSERT INTO \"%s\" (key, value) "
                   "SELECT * FROM unnest($1::bytea[], $2::bytea[]) "
                   "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                   store->ready.table, store->ready.table);
    (void)snprintf(store->read_sql, sizeof store->read_sql,
                   "SELECT value FROM \"%s\" WHERE key = $1::bytea",
                   store->ready.table);
    return true;
}

static enum hf_status make_channels(struct store_postgres *store)
{
    uint32_t count = 1 + store->ready.readers;
    size_t bytes = count * sizeof *store->channels;
    size_t len = strlen(store->opts.conninfo);

    store->conninfo = hf_alloc(len + 1);
    store->channels = hf_alloc_lines(bytes);
    if (store->conninfo == NULL || store->channels == NULL)
        return HF_NOMEM;
    memcpy(store->conninfo, store->opts.conninfo, len + 1);
    store->count = count;
    for (uint32_t i = 0; i < count; i++)
        store->channels[i].link = (struct store_link){
            .conninfo = store->conninfo,
            .writer = i == 0 ? store->writer : NULL,
            .statement = i == 0 ? store->write_sql : store->read_sql,
            .params = i == 0 ? 3 : 1,
            .timeout_ms = store->opts.timeout_ms,
        };
    return HF_OK;
}

/* The table must be there before statements on it can be prepared. */
static enum hf_status make_table(struct store_postgres *store)
{
    struct store_link link = {.conninfo = store->conninfo,
                              .timeout_ms = store->opts.timeout_ms};
    char sql[SQL_BYTES];
    bool again;

    (void)snprintf(sql, sizeof sql,
                   "SET client_min_messages = warning; "
                   "CREATE TABLE IF NOT EXISTS \"%s\" "
                   "(key bytea PRIMARY KEY, value bytea NOT NULL)",
                   store->ready.table);
    enum hf_status status = hf_store_link_make(&link, &again);
    if (status == HF_OK)
        status = hf_store_link_run(&link, sql);
    /* Two who make it at once: one of them is told that it is there. */
    if (status == HF_FAILED)
        status = hf_store_link_run(&link, sql);
    if (status != HF_OK)
        (void)hf_store_ready_fail(&store->ready, status, link.text);
    hf_store_link_destroy(&link);
    return status == HF_NOTFOUND ? HF_FAILED : status;
}

/* The writer and a reader: is the table of this shape? */
static enum hf_status connect_first(struct store_postgres *store)
{
    enum hf_status status = HF_OK;

    for (int i = 0; i < 2 && status == HF_OK; i++) {
        status = connect_to(store, &store->channels[i]);
        if (status != HF_OK)
            (void)hf_store_ready_fail(&store->ready, status,
                                      store->channels[i].link.text);
    }
    return status == HF_NOTFOUND ? HF_FAILED : status;
}

static enum hf_status connect_all(void *context)
{
    struct store_postgres *store = context;
    enum hf_status status = make_channels(store);

    if (status == HF_OK)
        status = make_table(store);
    return status == HF_OK ? connect_first(store) : status;
}

static const struct store_kind kind = {
    .apply = apply, .read = read_key, .forget = forget, .close = close_store};

enum hf_status hf_store_postgres_open(struct hf_store *out,
                                      const struct hf_store_postgres_opts *opts)
{
    if (out == NULL || opts == NULL)
        return HF_INVALID;
    struct store_postgres *store = hf_alloc_zeroed(sizeof *store);
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
