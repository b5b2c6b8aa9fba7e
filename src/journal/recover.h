/* recover.h - walks the journal's batches in order, and judges its end.
 *
 *   snapshot (last batch L)   batch L+1 ... batch e-1   ? <- no valid batch e
 *                                                       P
 *
 * The walk goes from segment to segment: whenever the next batch's number is
 * the name of the next segment, it moves there. So a segment ends where the
 * next one begins, whatever lies behind that place.
 *
 * Where no valid batch `e` is found, something later decides. If any valid
 * batch or segment header further on, or the manifest, says that batch e was on
 * disk for good (`synced` >= e), it has been damaged since: HF_CORRUPT. So it
 * is if a segment is missing that the manifest or a later segment names, or if
 * this one is not as long as it was made: no crash does that. Otherwise e was
 * never acknowledged as durable, and the journal ends here: what lies behind
 * is the torn tail.
 *
 * Threads: a walk belongs to one thread; it only reads files.
 */
#ifndef JOURNAL_RECOVER_H
#define JOURNAL_RECOVER_H

#include "journal/folder.h"
#include "journal/journal.h"
#include "journal/manifest.h"
#include "journal/segment.h"

struct walk {
    /* in */
    struct folder *folder;
    struct folder_list *list;
    const struct journal_machine *machine; /* NULL: only look */
    void *state;                           /* of the machine */
    uint64_t after;                        /* apply batches above this one */
    uint64_t until; /* stop after this one; UINT64_MAX: go to the end */
    const struct manifest_slot *known; /* NULL: there is no manifest */

    /* out: the good part */
    uint64_t last;       /* highest good batch; `after` if none */
    uint64_t records;    /* applied */
    size_t tail_index;   /* in list->segments: where the good part ends */
    struct segment tail; /* that segment; `offset` is P, fd is -1 */

    bool modern; /* a segment is there that is never made without manifest */

    /* out: what lies behind P */
    bool stale;           /* a valid batch above `last`, in the same segment */
    uint64_t cut_bytes;   /* torn tail, as far as it can be recognised */
    uint64_t later_count; /* valid batches behind P, here and further on */
    uint64_t later_records;
    uint64_t proof; /* number of the batch that proves damage; 0: another */
};

/* Walks. HF_EMPTY: there is no segment and no snapshot to start after, a new
 * journal. HF_CORRUPT: damage, told in `error`; the outputs say where, with
 * tail_index == SIZE_MAX if there is no segment to start from. HF_IO,
 * HF_NOMEM. */
enum hf_status walk_run(struct walk *walk, char *error);

/* After a walk: everything that there ever was is there, and the end was
 * clean. */
bool walk_is_clean(const struct walk *walk);

/* The segment before one that starts after `last`; 0: none. */
uint64_t walk_previous(const struct walk *walk);

#endif
