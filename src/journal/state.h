/* state.h - struct journal: what is open. Private to the journal. */
#ifndef JOURNAL_STATE_H
#define JOURNAL_STATE_H

#include "journal/journal.h"
#include "journal/keeper.h"
#include "journal/maker.h"

/* What is under way; see journal.c. */
enum journal_phase { PHASE_IDLE, PHASE_SWITCHING, PHASE_ASKING, PHASE_WRITING };

/* The write of a batch with so many records is asked for again and again, for
 * that long at most, if the last write took less. */
#define JOURNAL_ASK_RECORDS 128u
#define JOURNAL_ASK_NS      300000u

/* The commit that the caller has been promised news of. */
enum journal_due { DUE_NONE, DUE_WAITING, DUE_WRITTEN };

/* One batch: room for its header, its records, room for its padding. */
struct journal_buffer {
    char *data; /* aligned to a block */
    size_t cap;
    size_t len; /* of the records, with their lengths */
    uint32_t count;
};

struct journal {
    struct log log; /* first: the owner's pointer is ours */
    const struct hf_clock *clock;
    enum journal_sync sync;
    uint64_t snapshot_bytes;
    uint64_t slow_ns;
    size_t batch_max;      /* most bytes of records in one batch */
    struct journal_io *io; /* to be closed by us; NULL: the caller's */
    struct folder folder;
    struct manifest manifest;
    struct keeper keeper;
    struct maker maker;

    struct segment segment;  /* the open one; fd -1 while switching */
    uint64_t last;           /* highest batch committed */
    uint64_t synced;         /* highest batch known durable */
    uint64_t since_snapshot; /* bytes written behind the newest */
    uint64_t note;           /* the owner's, for the next segment's start */

    enum journal_phase phase;
    enum journal_due due;
    bool snapshot_wanted;
    bool failed;
    int write_error;     /* of a write that was made at once */
    uint64_t started_ns; /* when the write under way began */
    size_t prepared;     /* room handed out by journal_prepare() */
    struct journal_buffer buffers[2];
    struct journal_buffer *building;
    struct journal_buffer *committed; /* on its way, or last written */

    uint64_t sync_at_ns;  /* when the next sync is due */
    uint64_t retry_at_ns; /* when what failed is tried again */
    struct log_stats stats;
    char error[JOURNAL_ERROR_MAX];
    char dir[];
};

/* journal_repair() on a disk of the caller's. */
enum hf_status journal_repair_on(struct journal_io *io, const char *dir,
                                 bool apply, struct hf_buf *text, char *error);

extern const struct log_ops journal_ops;

static inline struct journal *journal_of(const struct log *log)
{
    return (struct journal *)log; /* what const promises is the log's head */
}

void journal_close(struct log *log);
/* Finishes what is under way, whatever time it takes. */
void journal_settle(struct journal *journal);

#endif
