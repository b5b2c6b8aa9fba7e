/* journal.c - drives a journal and keeps account of what was acknowledged. */
#include "support/journal.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "holdfast/clock.h"
#include "journal/format.h"
#include "journal/state.h"
#include "support/test.h"

#define DEADLINE_MS 60000
#define WAIT_MS     200
#define FILES_MAX   512
#define NAME_BYTES  64

void rig_init(struct rig *rig, const char *name, struct journal_io *io)
{
    static char paths[8][PATH_MAX];
    static int used;
    char *path = paths[used++ % 8];

    snprintf(path, PATH_MAX, "%s/%s", test_folder(), name);
    *rig = (struct rig){.opts = {.dir = path,
                                 .machine = tally_machine(),
                                 .segment_bytes = RIG_SEGMENT_BYTES,
                                 .snapshot_bytes = UINT64_MAX,
                                 .io = io}};
}

enum hf_status rig_open(struct rig *rig)
{
    void *state;
    enum hf_status status =
        journal_open(&rig->journal, &rig->opts, &state, rig->error);

    if (status != HF_OK)
        rig->journal = NULL;
    else
        rig->state = state;
    return status;
}

void rig_close(struct rig *rig)
{
    if (rig->journal == NULL)
        return;
    log_close(rig->journal);
    hf_free(rig->state);
    rig->journal = NULL;
    rig->state = NULL;
}

void rig_stop(struct rig *rig)
{
    CHECK_EQ(log_stop(rig->journal), HF_OK);
    rig_close(rig);
}

enum hf_status rig_append(struct rig *rig, int count, size_t len)
{
    enum hf_status status = HF_OK;
    char *space;

    for (int i = 0; i < count && status == HF_OK; i++) {
        char text[32];
        size_t used = (size_t)snprintf(text, sizeof text, "r%llu",
                                       (unsigned long long)rig->next++);
        size_t whole = used > len ? used : len;
        status = log_prepare(rig->journal, whole, &space);
        if (status != HF_OK)
            break;
        memset(space, 'x', whole);
        memcpy(space, text, used);
        log_finish(rig->journal, whole);
        tally_apply(&rig->built, hf_bytes(space, whole));
    }
    return status;
}

/* Applies what the journal says it has committed. */
static void apply_committed(struct rig *rig)
{
    struct hf_bytes record;
    size_t at = 0;

    while (log_committed(rig->journal, &at, &record) == HF_OK)
        tally_apply(rig->state, record);
    rig->acked = rig->tried;
    CHECK_EQ(rig->state->count, rig->acked.count);
    CHECK(rig->state->hash == rig->acked.hash);
}

enum hf_status rig_poll(struct rig *rig)
{
    enum hf_status status = log_poll(rig->journal);

    if (status == HF_OK)
        apply_committed(rig);
    return status;
}

enum hf_status rig_finish(struct rig *rig)
{
    struct pollfd wake = {.fd = log_wake_fd(rig->journal), .events = POLLIN};
    enum hf_status status = rig_poll(rig);

    while (status == HF_PENDING) {
        CHECK_EQ(poll(&wake, 1, DEADLINE_MS), 1);
        status = rig_poll(rig);
    }
    return status;
}

enum hf_status rig_start(struct rig *rig)
{
    rig->tried = rig->built;
    enum hf_status status = log_commit(rig->journal);
    if (status == HF_OK)
        apply_committed(rig);
    return status;
}

enum hf_status rig_commit(struct rig *rig)
{
    enum hf_status status = rig_start(rig);

    return status == HF_PENDING ? rig_finish(rig) : status;
}

enum hf_status rig_write(struct rig *rig, int batches)
{
    enum hf_status status = HF_OK;

    for (int i = 0; i < batches && status == HF_OK; i++) {
        uint64_t n = rig->next;
        size_t len = 1 + n * 7919 % (n % 5 == 0 ? 6000 : 300);
        status = rig_append(rig, 1 + (int)(n % 3), len);
        if (status == HF_OK)
            status = rig_commit(rig);
    }
    return status;
}

/* Sleeps: on a busy machine it may take long until one who yields is back. A
 * switch that tend has found under way makes the wake fd readable. */
void rig_await_spare(struct rig *rig)
{
    for (uint64_t now_ns = 0; rig_files(rig, "spare-", 0, NULL) == 0;) {
        log_tend(rig->journal, now_ns += 1000000000);
        sched_yield();
    }
}

void rig_await_snapshot(struct rig *rig)
{
    struct pollfd wake = {.fd = log_wake_fd(rig->journal), .events = POLLIN};
    const struct hf_clock *clock = hf_clock_system();
    uint64_t end_ns = hf_clock_now_ns(clock) + DEADLINE_MS * 1000000ull;

    while (log_snapshot_running(rig->journal)) {
        CHECK(hf_clock_now_ns(clock) < end_ns);
        log_tend(rig->journal, 0);
        if (maker_look(&journal_of(rig->journal)->maker).running) {
            (void)hf_future_get(journal_of(rig->journal)->maker.task,
                                hf_clock_after_ns(NULL, WAIT_MS * 1000000ull),
                                NULL);
        } else if (log_snapshot_running(rig->journal)) {
            (void)poll(&wake, 1, WAIT_MS);
            journal_io_wake_clear(journal_of(rig->journal)->folder.io);
        }
    }
}

void rig_check(struct rig *rig)
{
    const struct tally *owed = &rig->acked;

    if (rig->state->count != owed->count)
        owed = &rig->tried;
    CHECK_EQ(rig->state->count, owed->count);
    CHECK(rig->state->hash == owed->hash);
    rig->acked = *rig->state;
    rig->tried = *rig->state;
    rig->built = *rig->state;
}

const char *rig_path(const struct rig *rig, const char *name)
{
    static char path[PATH_MAX + NAME_BYTES];

    snprintf(path, sizeof path, "%s/%s", rig->opts.dir, name);
    return path;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

int rig_files(const struct rig *rig, const char *prefix, int index, char *name)
{
    static char names[FILES_MAX][NAME_BYTES];
    DIR *dir = opendir(rig->opts.dir);
    struct dirent *entry;
    int count = 0;

    CHECK(dir != NULL);
    while ((entry = readdir(dir)) != NULL && count < FILES_MAX) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
            entry->d_name[0] != '.')
            snprintf(names[count++], NAME_BYTES, "%.63s", entry->d_name);
    }
    closedir(dir);
    qsort(names, (size_t)count, NAME_BYTES, by_name);
    if (name != NULL && index < count)
        memcpy(name, names[index], NAME_BYTES);
    return count;
}

int rig_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    CHECK(dir != NULL);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

struct hf_buf rig_read_file(const char *path)
{
    struct hf_buf data = {0};
    FILE *file = fopen(path, "r");
    size_t got;

    CHECK(file != NULL);
    do {
        CHECK_EQ(hf_buf_reserve(&data, 65536), HF_OK);
        got = fread(data.data + data.len, 1, 65536, file);
        data.len += got;
    } while (got > 0);
    fclose(file);
    return data;
}

void rig_write_file(const char *path, const char *data, size_t len)
{
    FILE *file = fopen(path, "w");

    CHECK(file != NULL);
    CHECK_EQ(fwrite(data, 1, len, file), len);
    CHECK_EQ(fclose(file), 0);
}

void rig_copy(const struct rig *from, struct rig *to)
{
    char name[NAME_BYTES];

    if (mkdir(to->opts.dir, 0700) != 0)
        CHECK_EQ(errno, EEXIST);
    for (int i = rig_files(to, "", 0, NULL); i > 0; i--) {
        rig_files(to, "", i - 1, name);
        (void)remove(rig_path(to, name));
    }
    for (int i = rig_files(from, "", 0, NULL); i > 0; i--) {
        rig_files(from, "", i - 1, name);
        if (strcmp(name, "dropped") == 0)
            continue;
        struct hf_buf data = rig_read_file(rig_path(from, name));
        rig_write_file(rig_path(to, name), data.data, data.len);
        hf_buf_destroy(&data);
    }
    to->acked = from->acked;
    to->tried = from->tried;
    to->built = from->tried;
    to->next = from->next;
}

void rig_expect(struct rig *rig, const struct tally *expected)
{
    rig->acked = rig->tried = *expected;
    CHECK_EQ(rig_open(rig), HF_OK);
    rig_check(rig);
    CHECK_EQ(rig_write(rig, 3), HF_OK);
    rig_close(rig);
    CHECK_EQ(rig_open(rig), HF_OK);
    rig_check(rig);
    rig_close(rig);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void rig_craft(const struct rig *rig, uint64_t first, uint64_t last,
               uint64_t lost, uint64_t synced)
{
    struct segment_header header = {
        .first = first, .synced = least(synced, first - 1), .salt = 77 + first};
    char file[RIG_SEGMENT_BYTES] = {0};
    char name[64];
    uint64_t at = JOURNAL_BLOCK;

    segment_header_encode(&header, file);
    for (uint64_t n = first; n <= last; n++, at += JOURNAL_BLOCK) {
        size_t len = (size_t)snprintf(file + at + BATCH_HEADER_BYTES +
                                          BATCH_RECORD_BYTES,
                                      32, "b%llu", (unsigned long long)n);
        batch_record_encode(file + at + BATCH_HEADER_BYTES, (uint32_t)len);
        struct batch batch = {.number = n,
                              .synced = least(synced, n - 1),
                              .count = 1,
                              .records =
                                  hf_bytes(NULL, BATCH_RECORD_BYTES + len)};
        batch_encode(file + at, &batch, header.salt);
        if (n < 64 && (lost >> n & 1) != 0)
            memset(file + at, 0, JOURNAL_BLOCK);
    }
    snprintf(name, sizeof name, "journal-%016llx.seg",
             (unsigned long long)first);
    rig_write_file(rig_path(rig, name), file, sizeof file);
}

struct tally rig_crafted(uint64_t last)
{
    struct tally tally = {0};
    char text[32];

    for (uint64_t n = 1; n <= last; n++) {
        int len = snprintf(text, sizeof text, "b%llu", (unsigned long long)n);
        tally_apply(&tally, hf_bytes(text, (size_t)len));
    }
    return tally;
}

void rig_reopen(struct rig *rig)
{
    rig_close(rig);
    CHECK_EQ(rig_open(rig), HF_OK);
    rig_check(rig);
}

struct log_stats rig_stats(const struct rig *rig)
{
    struct log_stats stats;

    log_stats(rig->journal, &stats);
    return stats;
}

void rig_write_with_snapshot(struct rig *rig)
{
    CHECK_EQ(rig_open(rig), HF_OK);
    CHECK_EQ(rig_write(rig, 20), HF_OK);
    CHECK_EQ(log_snapshot(rig->journal), HF_OK);
    rig_await_snapshot(rig);
    CHECK_EQ(rig_files(rig, "snapshot-", 0, NULL), 1);
    CHECK_EQ(rig_write(rig, 3), HF_OK);
    rig_close(rig);
}
