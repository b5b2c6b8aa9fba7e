/* journal.c - how long a commit takes: one small record, on disk before the
 * call returns.
 *
 *   build/bench/journal [DIR] [COMMITS]
 *
 * Compares the disks behind the journal's seam. "plain" is a pwrite in the
 * caller's thread: the least there can be. The disks take turns, so that a
 * noisy neighbour hits all of them alike.
 */
#include <unistd.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "holdfast/clock.h"
#include "journal/disk.h"
#include "journal/journal.h"

#define ROUNDS        5
#define COMMITS       2000
#define RECORD_BYTES  100
#define SEGMENT_BYTES (16u << 20)

/* A machine without state: only commits are measured. */
static void *create(void *context)
{
    (void)context;
    return hf_alloc(1);
}

static enum hf_status apply(void *machine, struct hf_bytes record)
{
    (void)machine;
    (void)record;
    return HF_OK;
}

static enum hf_status save(void *machine, journal_sink *sink, void *context)
{
    (void)machine;
    return sink(context, "", 0);
}

static const struct journal_machine nothing = {
    .create = create,
    .destroy = hf_free,
    .apply = apply,
    .save = save,
    .load = apply,
};

struct kind {
    const char *name;
    enum hf_status (*make)(struct journal_io **out);
    enum journal_sync sync;
};

static const struct kind kinds[] = {
    {"always, plain", journal_io_plain, JOURNAL_ALWAYS},
    {"always, uring", journal_io_uring, JOURNAL_ALWAYS},
    {"always, thread", journal_io_thread, JOURNAL_ALWAYS},
    {"interval", journal_io_uring, JOURNAL_INTERVAL},
    {"none", journal_io_uring, JOURNAL_NONE},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* Commits `count` records and notes each one's time. */
static int measure(const struct kind *kind, const char *dir, size_t count,
                   uint64_t *times_ns)
{
    const struct hf_clock *clock = hf_clock_system();
    char record[RECORD_BYTES] = {1};
    char error[JOURNAL_ERROR_MAX];
    struct log *journal;
    struct journal_opts opts = {.dir = dir,
                                .sync = kind->sync,
                                .machine = &nothing,
                                .segment_bytes = SEGMENT_BYTES,
                                .snapshot_bytes = UINT64_MAX};
    void *state;

    if (kind->make(&opts.io) != HF_OK)
        return -1;
    if (journal_open(&journal, &opts, &state, error) != HF_OK) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t start_ns = hf_clock_now_ns(clock);
        log_append(journal, hf_bytes(record, sizeof record));
        enum hf_status status = log_commit(journal);
        while (status == HF_PENDING)
            status = log_poll(journal);
        if (status != HF_OK) {
            fprintf(stderr, "%s\n", log_error(journal));
            exit(1);
        }
        times_ns[i] = hf_clock_now_ns(clock) - start_ns;
    }
    (void)log_snapshot(journal); /* so that segments are recycled */
    while (log_snapshot_running(journal))
        log_tend(journal, 0);
    log_close(journal);
    hf_free(state);
    opts.io->close(opts.io);
    return 0;
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

static void print_row(const char *name, uint64_t *times_ns, size_t count)
{
    qsort(times_ns, count, sizeof *times_ns, compare);
    printf("%-16s %10.1f %10.1f %10.1f %10.1f\n", name,
           (double)times_ns[count / 2] / 1e3,
           (double)times_ns[count * 9 / 10] / 1e3,
           (double)times_ns[count * 99 / 100] / 1e3,
           (double)times_ns[count - 1] / 1e3);
}

int main(int argc, char **argv)
{
    const char *root = argc > 1 ? argv[1] : "build";
    uint64_t commits = COMMITS;
    uint64_t *times_ns[KINDS];
    bool missing[KINDS] = {false};

    if (argc > 2 && (hf_parse_u64(hf_bytes_text(argv[2]), &commits) != HF_OK ||
                     commits == 0)) {
        fprintf(stderr, "usage: journal [DIR] [COMMITS]\n");
        return 2;
    }
    for (size_t k = 0; k < KINDS; k++) {
        times_ns[k] = hf_alloc(ROUNDS * commits * sizeof(uint64_t));
        if (times_ns[k] == NULL)
            return 1;
    }
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t k = 0; k < KINDS; k++) {
            char dir[4096];
            snprintf(dir, sizeof dir, "%s/bench-journal-%zu", root, k);
            if (measure(&kinds[k], dir, commits,
                        times_ns[k] + round * commits) != 0)
                missing[k] = true;
        }
    }
    printf("%-16s %10s %10s %10s %10s  (us, %d x %llu commits)\n", "commit",
           "p50", "p90", "p99", "max", ROUNDS, (unsigned long long)commits);
    for (size_t k = 0; k < KINDS; k++) {
        if (missing[k])
            printf("%-16s not available here\n", kinds[k].name);
        else
            print_row(kinds[k].name, times_ns[k], ROUNDS * commits);
        hf_free(times_ns[k]);
    }
    return 0;
}
