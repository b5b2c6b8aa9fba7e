/* simulate_parts.h - what the parts of the simulation share.
 *
 *   simulate.c          the loop: apply, ask, save, load, replay, starve
 *   simulate_make.c     random commands and times
 *   simulate_compare.c  engine against model, and the report of a difference
 */
#ifndef SIM_ENGINE_SIMULATE_PARTS_H
#define SIM_ENGINE_SIMULATE_PARTS_H

#include "base/random.h"
#include "cli/proof.h"
#include "hold/image.h"
#include "sim/engine/model.h"

#define SIM_NAMES_MAX  700u
#define SIM_OWNERS_MAX 6u
#define SIM_RECENT     16u

/* A command with the bytes that its texts may point to. */
struct sim_command {
    struct hold_command command;
    char id[HOLD_ID_MAX];
    char source[HOLD_RECORD_MAX];
    char record[HOLD_RECORD_MAX];
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
    bool wide;
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
    struct model_text names[SIM_NAMES_MAX];
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
    uint64_t starved; /* allocations that were made to fail */
    uint64_t early;   /* questions for which time had to pass first */
    uint64_t cut;     /* pages of listings that ended by their steps */
    bool failed;
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

#endif
