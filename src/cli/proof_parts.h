/* proof_parts.h - the book that a proof keeps. */
#ifndef CLI_PROOF_PARTS_H
#define CLI_PROOF_PARTS_H

#include "base/index.h"
#include "cli/proof.h"
#include "hold/image.h"

/* Locks as their events tell them: grants by token and name, and the names that
 * are held. */
struct proof_locks {
    struct hf_index grants;
    struct hf_index names;
};

struct proof {
    struct proof_result *result;
    struct hold_engine *engine;
    size_t account;
    struct hf_texts texts;
    struct proof_locks locks;
    struct hold_book *book; /* of stock */
    bool started;
    struct hold_command command; /* being applied */
    struct hold_command ask;
    struct feed_scan *feed;      /* NULL: not compared */
    struct feed_scanned scanned; /* its next event; empty: it has no more */
    proof_watch_fn *watch;       /* NULL: nobody */
    void *watch_context;
    char *encoded;
    struct hf_buf events; /* of the record being applied, copied */
    struct hf_buf names;
};

__attribute__((format(printf, 2, 3))) enum hf_status
proof_wrong(struct proof *proof, const char *format, ...);
const struct hold_out *proof_ask(struct proof *proof, enum hold_kind kind,
                                 struct hf_bytes name);

/* To whoever watches. */
void proof_tell(struct proof *proof, const struct hold_event *event,
                uint64_t now_us, const struct hold_book *book);

/* proof_feed.c */

/* What one call gave must be in the files. */
enum hf_status proof_feed_out(struct proof *proof, const struct hold_out *out);
/* There must be no more. */
enum hf_status proof_feed_end(struct proof *proof, bool unclean);

enum hf_status proof_locks_open(struct proof_locks *locks,
                                struct hf_texts *texts,
                                struct hf_hash_seed seed, size_t *account);
void proof_locks_close(struct proof_locks *locks);
void proof_locks_clear(struct proof_locks *locks);
/* A grant that a snapshot brought; `proof` is a struct proof. */
hold_visit proof_lock_book;
enum hf_status proof_lock_event(struct proof *proof,
                                const struct hold_event *event);
/* After the last event: the engine shows the lock as the book does. */
enum hf_status proof_lock_compare(struct proof *proof, struct hf_bytes name);

#endif
