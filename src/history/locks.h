/* locks.h - what the history says of one lock, sorted by who held it.
 *
 *   fact    one call that says something of a lock
 *   hold    all facts with one token of one lock
 *
 *      lo ..... hi =============== end ........ over
 *       |begins|     surely held       may be    |surely not held
 *
 * Facts without a token (BUSY, NOTFOUND, a LOCK whose outcome is unknown) come
 * first, then the holds in the order of their tokens, which is the order in
 * which they were given.
 */
#ifndef HISTORY_LOCKS_H
#define HISTORY_LOCKS_H

#include "history/check.h"

enum fact_kind {
    FACT_ASKED, /* a LOCK that may have been granted, with an unknown token */
    FACT_TIMED_OUT, /* a LOCK that was told so: until then it may have been
                       seen, and as a re-entry have lengthened the hold */
    FACT_BUSY,      /* held by `owner` */
    FACT_FREE,
    FACT_GRANT,    /* this and below: about `token` */
    FACT_RENEWED,  /* or perhaps, if the call is not sure */
    FACT_UNLOCKED, /* likewise; `count` is what remains */
    FACT_SHOWN,    /* a read */
    FACT_MISSED,   /* LOST or NOTHELD */
};

struct fact {
    struct key key; /* of the lock: by kind or by token, then by lo */
    const struct call *call;
    struct hf_bytes owner;
    uint64_t token;
    int64_t count;
    int64_t safe_ms; /* of a grant or renewal; of a read: expires_ms */
    int64_t held_ms; /* of a read; -1: not told */
    uint32_t lo;
    uint32_t hi;
    enum fact_kind kind;
};

struct hold {
    uint64_t token;
    const struct fact *facts;
    size_t count;
    struct hf_bytes owner;
    const struct call *proof; /* the first call that shows it */
    const struct fact *begin; /* the grant that began it; NULL: not told */
    uint32_t lo;
    uint32_t hi;
    uint32_t end;
    uint32_t kept; /* as `end`, but for what reads show */
    uint32_t over;
    uint64_t over_us;
    uint64_t until_us;       /* the longest promise */
    uint32_t until_at;       /* when that was told */
    uint32_t until_cut;      /* up to where it stands */
    const struct hold *next; /* of the later ones, the first to be known */
};

/* One lock. */
struct lock_view {
    struct check *check;
    struct hf_bytes name;
    const struct fact *loose; /* without a token: ASKED first, each by lo */
    size_t loose_count;
    size_t asked_count;
    size_t timed_end;   /* those that timed out are up to there */
    struct hold *holds; /* by token */
    size_t hold_count;
};

/* Works out where the hold surely is and is not; the later ones are done. */
void hold_settle(struct lock_view *view, size_t n);
/* May this LOCK, of unknown outcome, have begun the hold? `floor`: the holds
 * before it lasted at least until then. */
bool hold_may_begin(const struct fact *asked, const struct hold *hold,
                    uint32_t floor);
/* That floor: the latest sure end of the holds with smaller tokens. */
uint32_t hold_floor(const struct lock_view *view, const struct hold *hold);
/* The rules about one hold alone. */
void hold_judge(struct lock_view *view, const struct hold *hold);
/* The rules about reads that show no token, and about the order. */
void lock_judge(struct lock_view *view);

#endif
