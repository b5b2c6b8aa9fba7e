/* simulate_parts.h - what the parts of the simulation share.
 *
 *   simulate.c          the loop: apply, ask, save, load, replay, starve
 *   simulate_make.c     random commands and times
 *   simulate_locks.c    what is random about locks and sessions
 *   simulate_stock.c    about products
 *   simulate_group.c    and about groups
 *   simulate_places.c   about places
 *   simulate_expect.c   and about what is announced
 *   simulate_bounds.c   settings
 *   simulate_graph.c    WAITGRAPH
 *   simulate_past.c     EXPLAIN
 *   simulate_compare.c  engine against model, and the report of a difference
 */
#ifndef SIM_ENGINE_SIMULATE_PARTS_H
#define SIM_ENGINE_SIMULATE_PARTS_H

#include "base/random.h"
#include "cli/proof.h"
#include "hold/image.h"
#include "sim/engine/model_lock.h"

#define SIM_NAMES_MAX  700u
#define SIM_POOL_MAX   (2 * SIM_NAMES_MAX) /* as many, and as many paths */
#define SIM_OWNERS_MAX 8u
#define SIM_RECENT     16u

/* A command with the bytes that its texts may point to. */
struct sim_command {
    struct hold_command command;
    char id[HOLD_ID_MAX];
    char source[HOLD_RECORD_MAX];
    char record[HOLD_RECORD_MAX];
    char group[HOLD_GROUP_BYTES]; /* the commands of one */
    size_t record_len;
};

/* What is likely for a while: few names collide, many make a backlog. */
struct sim_profile {
    uint64_t locks;
    uint64_t owners;
    uint64_t products;
    uint64_t ids;
    uint64_t requests;
    uint64_t fences;
    uint64_t ttl_max_ms;
    uint64_t request_percent;
    uint64_t wait_percent;
    uint64_t jump_percent; /* how often time moves on */
    uint64_t sessions;
    uint64_t session_percent;
    uint64_t shared_percent;
    uint64_t counting_percent;
    uint64_t forever_percent; /* of those who wait */
    uint64_t priority_percent;
    uint64_t tree_percent;
    enum hold_policy policy;
    uint64_t patience; /* how seldom those who wait ask for more */
    bool scarce;       /* there is little stock */
    bool shop;         /* and much is asked for */
    bool expects;      /* or booked before it arrives */
    bool wide;
    bool deadlock; /* owners take one name after the other */
    bool ring;     /* each its own first, then that of the next */
    bool mixed;    /* every other name is a counting lock */
    bool paths;    /* locks have names that are related */
};

struct sim {
    uint64_t seed;
    uint64_t step;
    uint64_t step_count;
    struct hf_random random;
    struct hold_engine *engine;
    struct model *model;
    struct proof *proof; /* follows the records, as `holdfast verify` does */
    struct proof_result proved;
    uint64_t now_us; /* the furthest time so far */
    struct sim_profile profile;
    uint64_t profile_until; /* step at which the next one begins */
    struct model_text names[SIM_POOL_MAX]; /* from SIM_NAMES_MAX on: paths */
    bool bounds_new; /* they changed: somebody may be ready by that */
    bool bounds_due; /* the next command sets the profile's bounds */

    /* Records of commands with a REQ, to be sent again. */
    struct hf_buf recent[SIM_RECENT];
    size_t recent_next;

    struct hf_buf image;   /* pieces, each behind its length */
    struct hf_buf records; /* since the image, each behind its length */
    uint64_t record_count;

    uint64_t kinds[HOLD_KINDS];
    uint64_t codes[HOLD_CODE_COUNT];
    uint64_t refused; /* told by hold_answer_now */
    uint64_t answers; /* to those who waited */
    uint64_t events;
    uint64_t images;
    uint64_t replays;
    uint64_t starved;   /* allocations that were made to fail */
    uint64_t early;     /* questions for which time had to pass first */
    uint64_t cut;       /* pages of listings that ended by their steps */
    uint64_t edges;     /* of who waits for whom, compared */
    uint64_t past;      /* things that happened to locks, the same */
    uint64_t saved_seq; /* of the image */
    bool failed;
    enum model_circle circle; /* that the last step left */
    uint64_t circles;         /* steps that left one that is allowed */
    const struct hold_command *current; /* for the report */
};

uint64_t sim_below(struct sim *sim, uint64_t bound);
bool sim_chance(struct sim *sim, uint64_t percent);

/* simulate_make.c */
void sim_make_names(struct sim *sim);
void sim_make_profile(struct sim *sim);
/* A command for the journal, encoded. */
void sim_make_write(struct sim *sim, struct sim_command *out);
/* A question; with no record. */
void sim_make_ask(struct sim *sim, struct sim_command *out);

/* The kind of a write, and of a question. */
enum hold_kind sim_pick_kind(struct sim *sim);
enum hold_kind sim_pick_ask(struct sim *sim);
/* Fills in what the words and options of its kind call for. */
void sim_fill(struct sim *sim, struct sim_command *out);
/* simulate_bounds.c */
void sim_make_bounds(struct sim *sim, struct hold_command *c);
/* simulate_feed.c */
void sim_feed_open(struct sim *sim);
void sim_feed_take(struct sim *sim, const struct hold_out *out);
void sim_feed_check(struct sim *sim);
void sim_feed_close(void);
/* simulate_compare.c: what an event tells, as model_tell() has it. */
uint64_t sim_event_facts(const struct hold_event *event);
/* simulate_group.c: fills in the commands of a group. */
void sim_make_group(struct sim *sim, struct sim_command *out);

struct hf_bytes sim_pick_name(struct sim *sim, uint64_t count);
/* One of SIM_OWNERS_MAX. */
struct hf_bytes sim_owner(uint64_t i);
struct hf_bytes sim_pick_owner(struct sim *sim);
uint64_t sim_pick_ttl_ms(struct sim *sim);
/* The name of the pool that is equal to `text`, which may go away. */
struct hf_bytes sim_pool_name(struct sim *sim, struct hf_bytes text);
struct hf_bytes sim_pool_owner(const struct model_text *text);

/* The names of locks: one of them, and one by chance. */
struct hf_bytes sim_lock_name(const struct sim *sim, uint64_t i);
struct hf_bytes sim_pick_lock_name(struct sim *sim);
/* Puts the paths that are used most into another order. */
void sim_mix_paths(struct sim *sim);

/* simulate_locks.c */
void sim_make_lock_profile(struct sim *sim);
/* A lock, by chance one that is held. */
struct hf_bytes sim_pick_lock(struct sim *sim);
/* Mostly one that is right; then the name mostly is, too, if it is a lock's. */
void sim_make_token(struct sim *sim, struct hold_command *c, bool of_lock);
uint64_t sim_pick_session(struct sim *sim);
/* A command that settles what it names, while not all is swept. */
enum hold_kind sim_pick_settling(struct sim *sim);
/* Gives up a wait, or a hold. */
void sim_make_abandon(struct sim *sim, struct hold_command *c);
/* TIMEOUT was told: to a wait, a hold or a request, or several of them. */
void sim_make_timeout(struct sim *sim, struct hold_command *c);
/* simulate_stock.c */
int64_t sim_pick_total(struct sim *sim);
int64_t sim_pick_change(struct sim *sim);
/* A word that only products have, and an option. */
void sim_make_stock_word(struct sim *sim, struct hold_command *c,
                         enum hold_word word);
void sim_make_stock_limit(struct sim *sim, struct hold_command *c);
/* Which group is to be confirmed, cancelled or shown. */
void sim_make_group_name(struct sim *sim, struct hold_command *c);
void sim_make_stock_option(struct sim *sim, struct hold_command *c,
                           enum hold_arg_bit option);

/* An option that only locks and sessions have. */
void sim_make_lock_option(struct sim *sim, struct hold_command *c,
                          enum hold_arg_bit option);
/* What one option says about the others. */
void sim_make_lock(struct sim *sim, struct hold_command *c);
void sim_make_proclaim(struct sim *sim, struct hold_command *c);
void sim_make_open(struct sim *sim, struct hold_command *c);
void sim_make_left(struct sim *sim, struct hold_command *c);

/* simulate_stock.c */
void sim_make_stock_profile(struct sim *sim);
struct hf_bytes sim_pick_product(struct sim *sim);
/* An operation on stock. */
enum hold_kind sim_pick_stock_kind(struct sim *sim);
/* Sometimes it is about one who waits for stock, or about a reservation that
 * such a one got. */
void sim_make_give_up(struct sim *sim, struct sim_command *out);
/* Mostly of somebody who waits. */
void sim_make_leave(struct sim *sim, struct sim_command *out);
/* Some names are of products at places; a RESERVE may ask for those, and
 * STOCK PLACES for all of a sku. */
#define SIM_PLACED 20u /* among so many names they are */
static inline bool sim_has_places(const struct sim *sim)
{
    return sim->profile.shop && sim->profile.products == SIM_PLACED;
}
void sim_name_places(struct sim *sim);
void sim_make_places(struct sim *sim, struct hold_command *c);
void sim_make_show_places(struct sim *sim, struct hold_command *c);

/* simulate_expect.c */
static inline bool sim_expects(const struct sim *sim)
{
    return sim->profile.shop && sim->profile.expects;
}
enum hold_kind sim_pick_expect_kind(struct sim *sim);
/* What is announced, or arrives. */
void sim_make_expect(struct sim *sim, struct hold_command *c);
/* By chance a RESERVE books. */
void sim_make_preorder(struct sim *sim, struct hold_command *c);

/* simulate_key.c */
void sim_make_key(struct sim *sim, struct hold_command *c);
void sim_compare_keys(struct sim *sim, struct hold_command *command);

/* simulate_graph.c: compares who waits for whom. */
void sim_compare_graph(struct sim *sim, struct hold_command *command);

/* simulate_past.c: compares what is told of a lock's past. */
void sim_compare_past(struct sim *sim);
/* The engine is another now, made of the image and the records since. */
void sim_lose_past(struct sim *sim);

/* simulate_compare.c. Each prints the first difference and sets `failed`. */
void sim_fail(struct sim *sim, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void sim_fail_reply(struct sim *sim, const char *what,
                    enum hold_code expected_code, struct hf_bytes expected,
                    enum hold_code found_code, struct hf_bytes found);
void sim_compare(struct sim *sim, const struct hold_out *out);
/* `base` are the engine's figures when the model's were 0. */
void sim_compare_totals(struct sim *sim, const struct hold_counts *base);
/* Reads a listing in pages and compares it as a set. */
void sim_compare_list(struct sim *sim, struct hold_command *command);

/* Names of classes. */
#define SIM_CLASSES 3u

/* simulate_stock.c */
int64_t sim_pick_total(struct sim *sim);
/* As a rule one that there is. */
struct hf_bytes sim_pick_class(struct sim *sim);
int64_t sim_pick_change(struct sim *sim);
void sim_make_items(struct sim *sim, struct hold_command *c);
void sim_make_id(struct sim *sim, struct sim_command *out, bool is_new);

#endif
