/* fill.c - makes a data folder with many locks or products, to time a start.
 *
 *   fill DIR locks|products COUNT journal|snapshot
 *
 * Writes the commands' records straight to the journal, with no server and no
 * sync per batch. `journal` leaves the records to be replayed; `snapshot`
 * makes a snapshot of them and waits for it, so that a start loads that.
 */
#include <unistd.h>

#include "drive.h"
#include "journal/journal.h"
#include "server/machine.h"

static void commit(struct log *journal)
{
    enum hf_status status = log_commit(journal);
    while (status == HF_PENDING) {
        usleep(100);
        status = log_poll(journal);
    }
    if (status)
        drive_fail("commit", log_error(journal));
}

static void write_record(struct log *journal,
                         const struct hold_command *command)
{
    static char record[HOLD_RECORD_MAX];
    size_t len = hold_encode(command, record);
    enum hf_status status = log_append(journal, hf_bytes(record, len));
    if (status == HF_FULL) {
        commit(journal);
        status = log_append(journal, hf_bytes(record, len));
    }
    if (status)
        drive_fail("append", hf_status_text(status));
}

static void write_all(struct log *journal, bool locks, uint64_t count)
{
    static struct hold_command command;
    char name[DRIVE_NAME_BYTES], owner[DRIVE_NAME_BYTES];
    command.now_us = hf_clock_wall_us(hf_clock_system());
    for (uint64_t i = 0; i < count; i++) {
        if (locks)
            drive_lock(&command, drive_name(name, 'l', i),
                       drive_name(owner, 'o', i));
        else
            drive_stock(&command, drive_name(name, 'p', i));
        write_record(journal, &command);
    }
    commit(journal);
}

static void snapshot(struct log *journal)
{
    enum hf_status status = log_snapshot(journal);
    if (status)
        drive_fail("snapshot", hf_status_text(status));
    while (log_snapshot_running(journal)) {
        usleep(1000);
        log_tend(journal, hf_clock_now_ns(hf_clock_system()));
    }
    struct log_stats stats;
    log_stats(journal, &stats);
    if (stats.snapshot_count == 0)
        drive_fail("snapshot", "it failed");
}

int main(int argc, char **argv)
{
    static const struct hf_hash_seed seed = {{1, 2}};
    if (argc != 5)
        drive_fail("usage", "fill DIR locks|products COUNT journal|snapshot");
    struct journal_opts opts = {
        .dir = argv[1],
        .sync = JOURNAL_NONE,
        .machine = server_machine(seed, NULL),
        .snapshot_bytes = UINT64_MAX,
    };
    char error[JOURNAL_ERROR_MAX];
    struct log *journal;
    void *engine;
    if (journal_open(&journal, &opts, &engine, error))
        drive_fail(argv[1], error);
    write_all(journal, !strcmp(argv[2], "locks"), drive_number(argv[3]));
    if (!strcmp(argv[4], "snapshot"))
        snapshot(journal);
    if (log_stop(journal))
        drive_fail("stop", log_error(journal));
    log_close(journal);
    hold_free(engine);
    return 0;
}
