/* writebehind.c - hf_writebehind beside what is done without one.
 *
 *   ours           on SQLite (flush) or on a store that keeps nothing
 *   ours-postgres  on PostgreSQL
 *   mutex          a map behind a mutex, and a thread that empties it
 *   sqlite         a transaction for each put
 *   postgres       a statement for each put, a connection for each thread
 */
#include "bench/keep/writebehind.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/writebehind.h"

extern const struct contest_side writebehind_mutex;
extern const struct contest_side writebehind_sqlite;
extern const struct contest_side writebehind_postgres;

#define WORK(text, kind, count, operations)                                 \
    {                                                                       \
        .name = text, .threads = count, .shape = kind, .exact = operations, \
        .fresh = true, .roam = true,                                        \
    }

static const struct contest_work works[] = {
    WORK("put-1", WB_PUT, 1, 1000000),
    WORK("put-2", WB_PUT, 2, 1000000),
    WORK("put-8", WB_PUT, 8, 1000000),
    WORK("logged-1", WB_LOGGED, 1, 500),
    WORK("logged-8", WB_LOGGED, 8, 2000),
    WORK("flush-1", WB_FLUSH, 1, 2000),
    {.name = NULL},
};

/* ---- Files. ---- */

void wb_folder_make(char path[256])
{
    const char *folder = getenv("TMPDIR");
    int length = snprintf(path, 256, "%s/behind.XXXXXX",
                          folder != NULL ? folder : "/var/tmp");

    if (length < 0 || length >= 256 || mkdtemp(path) == NULL)
        contest_fail("no folder can be made in TMPDIR");
}

static int remove_one(const char *path, const struct stat *about, int type,
                      struct FTW *place)
{
    (void)about, (void)type, (void)place;
    return remove(path);
}

void wb_folder_end(const char *path)
{
    if (nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0)
        contest_fail("a folder cannot be removed");
}

/* ---- A store that keeps nothing. ---- */

static enum hf_status none_read(void *context, const void *key, size_t key_len,
                                void (*found)(void *arg, const void *value,
                                              size_t value_len),
                                void *arg)
{
    (void)context, (void)key, (void)key_len, (void)found, (void)arg;
    return HF_NOTFOUND;
}

static enum hf_status
none_apply(void *context, const struct hf_store_change *changes, size_t count)
{
    (void)context, (void)changes, (void)count;
    return HF_OK;
}

/* ---- Ours. ---- */

struct ours {
    struct hf_writebehind *behind;
    struct hf_store store;
    char folder[256];
};

static void dead(void *context, enum hf_status why,
                 const struct hf_store_change *group, size_t count)
{
    (void)context, (void)group, (void)count;
    contest_fail(hf_status_text(why));
}

static void open_behind(struct ours *ours, const struct contest_work *work)
{
    char log_dir[300];
    struct hf_writebehind_opts opts = {
        .store = &ours->store,
        .dead = dead,
        .dirty_max = 1u << 18,
        .dirty_bytes = 1u << 30,
        .log_dir = work->shape == WB_LOGGED ? log_dir : NULL};

    (void)snprintf(log_dir, sizeof log_dir, "%s/log", ours->folder);
    if (hf_writebehind_open(&ours->behind, &opts) != HF_OK)
        contest_fail("hf_writebehind_open");
}

static void *ours_open(const struct contest_work *work)
{
    struct ours *ours = contest_alloc(sizeof *ours);
    char path[300];
    struct hf_store_sqlite_opts sqlite = {.path = path};

    wb_folder_make(ours->folder);
    (void)snprintf(path, sizeof path, "%s/db", ours->folder);
    ours->store = (struct hf_store){.read = none_read, .apply = none_apply};
    if (work->shape == WB_FLUSH &&
        hf_store_sqlite_open(&ours->store, &sqlite) != HF_OK)
        contest_fail("hf_store_sqlite_open");
    open_behind(ours, work);
    return ours;
}

static void *ours_postgres_open(const struct contest_work *work)
{
    struct hf_store_postgres_opts postgres = {.conninfo = getenv(WB_POSTGRES),
                                              .table = "behind"};

    if (work->shape != WB_FLUSH || postgres.conninfo == NULL)
        return NULL;
    struct ours *ours = contest_alloc(sizeof *ours);
    wb_folder_make(ours->folder);
    if (hf_store_postgres_open(&ours->store, &postgres) != HF_OK)
        contest_fail("hf_store_postgres_open");
    open_behind(ours, work);
    return ours;
}

static void ours_close(void *self)
{
    struct ours *ours = self;

    if (hf_writebehind_close(ours->behind, HF_FOREVER) != HF_OK)
        contest_fail("hf_writebehind_close");
    hf_store_close(&ours->store);
    wb_folder_end(ours->folder);
    free(ours);
}

CONTEST_INLINE void ours_put(struct contest_thread *thread, const char *key,
                             const char *value)
{
    struct ours *ours = thread->self;

    if (hf_writebehind_put(ours->behind, key, WB_KEY_BYTES, value,
                           WB_VALUE_BYTES, HF_FOREVER) != HF_OK)
        contest_fail("hf_writebehind_put");
}

static void ours_finish(struct contest_thread *thread)
{
    struct ours *ours = thread->self;

    if (hf_writebehind_flush(ours->behind, HF_FOREVER) != HF_OK)
        contest_fail("hf_writebehind_flush");
}

static void ours_run(struct contest_thread *thread)
{
    wb_run(thread, ours_put, ours_finish);
}

static const struct contest_side ours = {
    .name = "ours",
    .open = ours_open,
    .close = ours_close,
    .run = ours_run,
};

static const struct contest_side ours_postgres = {
    .name = "ours-postgres",
    .open = ours_postgres_open,
    .close = ours_close,
    .run = ours_run,
};

int main(int argc, char **argv)
{
    const struct contest_side *sides[] = {
        &ours,
        &ours_postgres,
        &writebehind_mutex,
        &writebehind_sqlite,
        &writebehind_postgres,
        NULL,
    };

    return contest_main(argc, argv, works, sides);
}
