/* writebehind_sqlite.c - SQLite with a transaction for each put, on disk when
 * it returns: write-ahead mode, synchronous=FULL, one connection and a mutex.
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "bench/keep/writebehind.h"

struct direct {
    pthread_mutex_t mutex;
    sqlite3 *db;
    sqlite3_stmt *put;
    char folder[256];
};

static void *direct_open(const struct contest_work *work)
{
    char path[300];

    if (work->shape == WB_PUT)
        return NULL;
    struct direct *self = contest_alloc(sizeof *self);
    pthread_mutex_init(&self->mutex, NULL);
    wb_folder_make(self->folder);
    snprintf(path, sizeof path, "%s/db", self->folder);
    if (sqlite3_open(path, &self->db) != SQLITE_OK ||
        sqlite3_exec(self->db,
                     "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "
                     "CREATE TABLE t (key BLOB PRIMARY KEY NOT NULL, "
                     "value BLOB NOT NULL) WITHOUT ROWID",
                     NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(self->db,
                           "INSERT INTO t VALUES (?1, ?2) ON CONFLICT (key) "
                           "DO UPDATE SET value = excluded.value",
                           -1, &self->put, NULL) != SQLITE_OK)
        contest_fail(sqlite3_errmsg(self->db));
    return self;
}

static void direct_close(void *context)
{
    struct direct *self = context;

    sqlite3_finalize(self->put);
    sqlite3_close(self->db);
    wb_folder_end(self->folder);
    free(self);
}

CONTEST_INLINE void direct_put(struct contest_thread *thread, const char *key,
                               const char *value)
{
    struct direct *self = thread->self;

    pthread_mutex_lock(&self->mutex);
    sqlite3_bind_blob(self->put, 1, key, WB_KEY_BYTES, SQLITE_STATIC);
    sqlite3_bind_blob(self->put, 2, value, WB_VALUE_BYTES, SQLITE_STATIC);
    if (sqlite3_step(self->put) != SQLITE_DONE)
        contest_fail(sqlite3_errmsg(self->db));
    sqlite3_reset(self->put);
    pthread_mutex_unlock(&self->mutex);
}

static void direct_finish(struct contest_thread *thread)
{
    (void)thread;
}

static void direct_run(struct contest_thread *thread)
{
    wb_run(thread, direct_put, direct_finish);
}

const struct contest_side writebehind_sqlite = {
    .name = "sqlite",
    .open = direct_open,
    .close = direct_close,
    .run = direct_run,
};
