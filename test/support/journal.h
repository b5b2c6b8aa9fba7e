/* journal.h - a journal under test, with an account of what it owes.
 *
 *   acked   every record whose commit has said HF_OK, in order
 *   tried   those and the batch on its way, which a crash may keep or lose
 *
 * After any crash the recovered tally must equal one of the two.
 */
#ifndef TEST_SUPPORT_JOURNAL_H
#define TEST_SUPPORT_JOURNAL_H

#include "journal/journal.h"
#include "support/tally.h"

/* Small, so that a few batches fill several segments. */
#define RIG_SEGMENT_BYTES (32u * 1024)

struct rig {
    struct journal_opts opts;
    struct log *journal; /* NULL while closed */
    struct tally *state;
    struct tally acked;
    struct tally tried;
    struct tally built; /* those and what was appended since */
    uint64_t next;      /* makes every record different */
    char error[JOURNAL_ERROR_MAX];
};

/* Sets up for the folder `name` under test_folder(); opens nothing. */
void rig_init(struct rig *rig, const char *name, struct journal_io *io);
enum hf_status rig_open(struct rig *rig);
/* Closes, if open. Nothing is committed by that, and the end is like that of
 * a crash. */
void rig_close(struct rig *rig);
/* Closes after a clean stop. */
void rig_stop(struct rig *rig);

/* Appends `count` records of about `len` bytes. HF_OK or the first refusal. */
enum hf_status rig_append(struct rig *rig, int count, size_t len);
/* Commits, and applies if that has ended well. */
enum hf_status rig_start(struct rig *rig);
/* After HF_PENDING: asks once, and applies if it has ended well. */
enum hf_status rig_poll(struct rig *rig);
/* After HF_PENDING: waits for the end, and applies. */
enum hf_status rig_finish(struct rig *rig);
/* Both. */
enum hf_status rig_commit(struct rig *rig);
/* Batches of one to three records of many sizes. */
enum hf_status rig_write(struct rig *rig, int batches);
/* Tends the journal until there is a spare. */
void rig_await_spare(struct rig *rig);
/* Waits for the end of the snapshot under way. */
void rig_await_snapshot(struct rig *rig);

/* Fails the test unless the state equals `acked`, or `tried`. Then both are
 * set to it. */
void rig_check(struct rig *rig);

/* Closes, opens again and checks. */
void rig_reopen(struct rig *rig);
/* Opens what is in the folder and finds exactly `expected`; goes on writing,
 * closes, and finds that as well. */
void rig_expect(struct rig *rig, const struct tally *expected);
struct log_stats rig_stats(const struct rig *rig);

/* The path of a file in the rig's folder; valid until the next call. */
const char *rig_path(const struct rig *rig, const char *name);
/* Names of segments or snapshots, oldest first: how many; `name` gets the
 * `index`th. */
int rig_files(const struct rig *rig, const char *prefix, int index, char *name);
/* Makes the folder of `to` the same as that of `from`. */
void rig_copy(const struct rig *from, struct rig *to);

/* How many descriptors the process has, and some that are always the same. */
int rig_descriptors(void);

/* Whole files, for tests that damage them. */
struct hf_buf rig_read_file(const char *path);
void rig_write_file(const char *path, const char *data, size_t len);

/* Makes a journal with a snapshot and three batches behind it; closed. */
void rig_write_with_snapshot(struct rig *rig);

/* Writes a segment of version 1 by hand: batches `first` .. `last` without
 * those whose bit is set in `lost`, one record each, that say at most `synced`.
 */
void rig_craft(const struct rig *rig, uint64_t first, uint64_t last,
               uint64_t lost, uint64_t synced);
/* What crafted batches 1 .. `last` add up to. */
struct tally rig_crafted(uint64_t last);

#endif
