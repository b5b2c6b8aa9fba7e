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
 *
 * A set of locks is a hold of each of its names. What is said of one of them,
 * or of the set, is a fact of all.
 *
 * Of the holds of one lock some exclude each other. `next` is of those that
 * were given later and exclude this one the first to be known: from then on
 * this one was over.
 */
#ifndef HISTORY_LOCKS_H
#define HISTORY_LOCKS_H

#include "history/sessions.h"

enum fact_kind {
    FACT_ASKED, /* a LOCK that may have been granted, with an unknown token */
    FACT_TIMED_OUT, /* a LOCK that was told so: until then it may have been
                       seen, and as a re-entry have lengthened the hold */
    FACT_WAITED,    /* a LOCK that waited and was refused */
    FACT_BUSY,      /* held by `owner`, or waited for */
    FACT_FREE,
    FACT_GRANT,      /* this and below: about `token` */
    FACT_RENEWED,    /* or perhaps, if the call is not sure */
    FACT_UNLOCKED,   /* likewise; `count` is what remains */
    FACT_DOWNGRADED, /* likewise */
    FACT_REVOKED,    /* likewise */
    FACT_SHOWN,      /* a read */
    FACT_HELD,       /* a read that says only this */
    FACT_MISSED,     /* LOST or NOTHELD */
};

struct fact {
    struct key key; /* of the lock: by kind or by token, then by lo */
    const struct call *call;
    struct hf_bytes owner;
    uint64_t token;
    uint64_t session;
    int64_t count;   /* of a read; -1: not told */
    int64_t safe_ms; /* of a grant or renewal; of a read: expires_ms */
    int64_t held_ms; /* of a read; -1: not told */
    int64_t fence;   /* 0: not told */
    uint32_t permits;
    uint32_t lo;
    uint32_t hi;
    enum fact_kind kind;
    enum mode mode;
};

struct hold {
    uint64_t token;
    const struct fact *facts;
    size_t count;
    struct hf_bytes owner;
    uint64_t session; /* 0: none; CHECK_UNKNOWN */
    int64_t fence;    /* 0: not told */
    enum mode mode;   /* when it was given; MODE_NONE: not known */
    uint32_t permits;
    uint32_t softened;        /* from there on it may be shared instead */
    bool set;                 /* of a set of locks */
    const struct call *proof; /* the first call that shows it */
    const struct fact *begin; /* the grant that began it; NULL: not told */
    uint32_t lo;
    uint32_t hi;
    uint32_t end;
    uint32_t kept;   /* as `end`, but for what reads show */
    uint32_t closed; /* up to there it is held, or its DELAY is not over */
    uint32_t over;
    uint64_t over_us;
    uint64_t until_us;  /* the longest promise */
    uint32_t until_at;  /* when that was told */
    uint32_t until_cut; /* up to where it stands */
    const struct hold *next;
};

/* One lock. */
struct lock_view {
    struct check *check;
    struct hf_bytes name;
    const struct fact *loose; /* without a token: ASKED first, each by lo */
    size_t loose_count;
    size_t asked_count;
    size_t timed_end;   /* those that timed out are up to there */
    size_t waited_end;  /* those that waited are up to there */
    struct hold *holds; /* by token */
    size_t hold_count;
    const struct hold *first[MODES]; /* of those that were settled, the first
                                        to be known of each mode */
};

/* Somebody holds a lock, or waits for it, from `lo` up to `hi` at the most. */
struct presence {
    struct key key; /* the name; by lo */
    struct hf_bytes owner;
    uint32_t lo;
    uint32_t hi;
    bool waits;
};

/* A hold, where somebody has a TREE. */
struct branch {
    struct key key; /* the name; by token */
    struct hold hold;
};

/* Is one of these names below the other, and is there a TREE at all? */
bool trees_relate(const struct check *c, struct hf_bytes a, struct hf_bytes b);
/* The rule about holds of related names. */
void trees_add(struct check *c, struct hf_bytes name, const struct hold *hold);
void trees_judge(struct check *c);

/* Gathers what is said of each lock, in c->facts. */
void facts_gather(struct check *c);

/* Works out where the hold surely is and is not; the later ones are done. */
void hold_settle(struct lock_view *view, size_t n);
/* May this LOCK, of unknown outcome, have begun the hold? `floor`: the holds
 * before it lasted at least until then. */
bool hold_may_begin(const struct fact *asked, const struct hold *hold,
                    uint32_t floor);
/* That floor: the latest sure end of the holds with smaller tokens that it
 * excludes. */
uint32_t hold_floor(const struct lock_view *view, const struct hold *hold);
/* Who was told TIMEOUT, or is gone, gives the hold back. May a LOCK of the same
 * owner that was asked for by then have re-entered it before? */
bool hold_is_reentered(const struct hold *hold, uint32_t until);
/* The rules about one hold alone. */
void hold_judge(struct lock_view *view, const struct hold *hold);
/* The rules about reads that show no token, and about the order. */
void lock_judge(struct lock_view *view);
/* Was it given in the order of the queue, to one who wants it alone? */
bool lock_was_queued(const struct hold *hold);
/* Requests that arrive closer together may overtake each other. */
#define ORDER_SLACK_US 50000u

/* Finds `next`. */
void modes_find_next(struct lock_view *view, struct hold *hold);
/* Is `earlier`, which was given before, surely over when `later` is given? */
bool modes_exclude(const struct hold *earlier, const struct hold *later);
/* The rules about fences of shared locks, and about permits. */
void modes_judge(struct lock_view *view);

#endif
