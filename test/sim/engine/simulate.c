/* simulate.c - the engine against a naive model: one random step after the
 * other, all compared.
 *
 *   seed -> commands and times -> engine --\
 *                             \-> model ---+-> equal after every step?
 *
 * One seed is one run, on every machine. Along the way the engine is saved,
 * loaded under another hash seed, rebuilt from its records, and starved of
 * memory.
 *
 *   build/test/sim/engine [--seed N] [--steps N] [--figures]
 *
 * --figures tells how often each thing that can happen to locks did.
 * Exits 1 and tells seed, step and command if they differ.
 */
#include <assert.h>

#include "base/memory.h"
#include "sim/engine/simulate_parts.h"
#include "support/failing.h"

#define BATCH_MAX      8u
#define START_US       1700000000000000u /* some day in 2023 */
#define RECORDS_MAX    (16u << 20)       /* bytes kept for a replay */
#define HASH_SEED_MAX  1000000u
#define CHECK_INTERVAL 32u
#define PAST_COUNT     4096u /* for EXPLAIN */

static struct hold_engine *new_engine(struct sim *sim)
{
    struct hf_hash_seed seed = {{sim_below(sim, HASH_SEED_MAX), sim->seed}};
    struct hold_engine *engine = hold_new(seed);

    if (engine == NULL || hold_tell(engine) != HF_OK ||
        hold_keep_past(engine, PAST_COUNT) != HF_OK)
        abort();
    return engine;
}

/* Pieces in one buffer, each behind its length. */

static enum hf_status put_piece(void *context, const void *data, size_t len)
{
    struct hf_buf *out = context;

    if (hf_buf_append(out, &len, sizeof len) != HF_OK ||
        hf_buf_append(out, data, len) != HF_OK)
        abort();
    return HF_OK;
}

static bool next_piece(const struct hf_buf *pieces, size_t *at,
                       struct hf_bytes *out)
{
    size_t len;

    if (*at == pieces->len)
        return false;
    memcpy(&len, pieces->data + *at, sizeof len);
    *out = hf_bytes(pieces->data + *at + sizeof len, len);
    *at += sizeof len + len;
    return true;
}

/* The state saved last, and the records since: a second engine made of them
 * is as the first one. */

static void check_engine(struct sim *sim, struct hold_engine *engine)
{
    char error[256] = "";

    if (hold_check(engine, error) != HF_OK)
        sim_fail(sim, "invariant", "%s", error);
}

static void expect_digest(struct sim *sim, const char *what, uint64_t expected,
                          struct hold_engine *engine)
{
    uint64_t found = hold_digest(engine);

    if (found != expected && !sim->failed)
        sim_fail(sim, what, "expected: digest %016llx\nfound:    %016llx",
                 (unsigned long long)expected, (unsigned long long)found);
}

static enum hf_status load_image(struct sim *sim, struct hold_engine *engine)
{
    struct hf_bytes piece;
    enum hf_status status = HF_OK;

    for (size_t at = 0;
         status == HF_OK && next_piece(&sim->image, &at, &piece);)
        status = hold_load(engine, piece);
    return status;
}

static struct hold_engine *rebuild(struct sim *sim)
{
    struct hold_engine *engine = new_engine(sim);
    struct hf_bytes record;
    enum hf_status status = load_image(sim, engine);

    for (size_t at = 0;
         status == HF_OK && next_piece(&sim->records, &at, &record);)
        status = hold_replay(engine, record, NULL, NULL);
    if (status != HF_OK)
        sim_fail(sim, "load and replay", "found: %s", hf_status_text(status));
    return engine;
}

static void replace_engine(struct sim *sim, struct hold_engine *engine)
{
    hold_free(sim->engine);
    sim->engine = engine;
    sim_lose_past(sim);
}

static void compare_rebuilt(struct sim *sim, const char *what)
{
    struct hold_engine *engine = rebuild(sim);

    expect_digest(sim, what, hold_digest(sim->engine), engine);
    check_engine(sim, engine);
    if (sim_chance(sim, 50))
        replace_engine(sim, engine);
    else
        hold_free(engine);
}

static void save(struct sim *sim)
{
    sim->image.len = 0;
    sim->saved_seq = sim->model->seq;
    sim->records.len = 0;
    sim->record_count = 0;
    if (hold_save(sim->engine, put_piece, &sim->image) != HF_OK)
        sim_fail(sim, "save", "it failed");
    sim->images++;
}

/* A proof that starts with the image. */
static void restart_proof(struct sim *sim)
{
    struct hf_hash_seed seed = {{sim->step, sim->seed}};
    struct hf_bytes piece;
    enum hf_status status = HF_OK;

    proof_free(sim->proof);
    sim->proof = proof_new(seed, &sim->proved);
    if (sim->proof == NULL)
        abort();
    for (size_t at = 0;
         status == HF_OK && next_piece(&sim->image, &at, &piece);)
        status = proof_load(sim->proof, piece);
    if (status != HF_OK)
        sim_fail(sim, "proof", "found: %s", hf_status_text(status));
}

static void check_proof(struct sim *sim, enum hf_status status)
{
    if (status != HF_OK && !sim->failed)
        sim_fail(sim, "proof", "found: %s", sim->proved.wrong);
}

/* A load that runs out of memory says so, and leaks nothing. */
static void starve_load(struct sim *sim)
{
    struct hold_engine *engine = new_engine(sim);

    hf_memory_fail_after(sim_below(sim, 20));
    enum hf_status status = load_image(sim, engine);
    hf_memory_fail_never();
    if (status != HF_OK && status != HF_NOMEM)
        sim_fail(sim, "load without memory", "found: %s",
                 hf_status_text(status));
    if (status == HF_OK)
        expect_digest(sim, "load with little memory", hold_digest(sim->engine),
                      engine);
    sim->starved++;
    hold_free(engine);
}

static void step_image(struct sim *sim)
{
    sim->current = NULL;
    if (sim_chance(sim, 30) || sim->records.len > RECORDS_MAX) {
        check_proof(sim, proof_finish(sim->proof, false));
        save(sim);
        compare_rebuilt(sim, "load");
        if (sim_chance(sim, 50) && !sim->failed)
            restart_proof(sim);
        if (sim_chance(sim, 20) && !sim->failed)
            starve_load(sim);
    } else {
        compare_rebuilt(sim, "replay");
        sim->replays++;
    }
}

/* Writes. */

/* Memory runs out while a command is prepared: nothing has changed. */
static void starve_prepare(struct sim *sim, const struct hold_command *c)
{
    uint64_t before = hold_digest(sim->engine);

    hf_memory_fail_after(sim_below(sim, 4));
    enum hf_status status = hold_prepare(sim->engine, c);
    hf_memory_fail_never();
    if (status == HF_OK)
        hold_forget(sim->engine, c);
    else if (status != HF_NOMEM)
        sim_fail(sim, "prepare", "found: %s", hf_status_text(status));
    expect_digest(sim, "prepare without memory", before, sim->engine);
    sim->starved++;
}

/* What hold_answer_now told, kept to be compared with what apply tells. */
struct refusal {
    bool told;
    bool due; /* something was: only the answer of a REQ is told then */
    bool digest_known;
    uint64_t digest;
    enum hold_code code;
    struct hf_buf body;
};

static void ask_refusal(struct sim *sim, const struct hold_command *c,
                        struct refusal *refusal)
{
    bool look = sim_chance(sim, 10);
    uint64_t before = look ? hold_digest(sim->engine) : 0;
    const struct hold_out *out = hold_answer_now(sim->engine, c);

    refusal->told = out != NULL;
    refusal->due = model_next_due_us(sim->model) <= c->now_us ||
                   model_next_due_us(sim->model) <= sim->model->now_us;
    refusal->digest_known = look && c->now_us <= sim->model->now_us;
    refusal->digest = before;
    if (out != NULL) {
        refusal->code = out->code;
        refusal->body.len = 0;
        if (hf_buf_append(&refusal->body, out->body.data, out->body.len) !=
            HF_OK)
            abort();
        sim->refused++;
    }
    if (look)
        expect_digest(sim, "hold_answer_now changed something", before,
                      sim->engine);
}

static void compare_refusal(struct sim *sim, const struct hold_out *out,
                            const struct refusal *refusal)
{
    struct hf_bytes body = hf_buf_bytes(&refusal->body);

    if (out->code != refusal->code || !hf_bytes_equal(out->body, body))
        sim_fail_reply(sim, "hold_answer_now told something else", out->code,
                       out->body, refusal->code, body);
    else if (refusal->due && sim->current->request.len == 0)
        sim_fail(sim, "hold_answer_now", "found: it ignored what is due");
    else if (!refusal->due && (out->event_count > 0 || out->answer_count > 0))
        sim_fail(sim, "hold_answer_now",
                 "found: it refused what changes things");
    else if (refusal->digest_known && !refusal->due)
        expect_digest(sim, "a refused command changed something",
                      refusal->digest, sim->engine);
}

/* With DETECT nobody comes to wait in a circle. */
static void check_circle(struct sim *sim)
{
    if (sim->profile.wide)
        return; /* too many for the model */
    enum model_circle circle = model_find_circle(sim->model);
    if (circle == MODEL_CIRCLE && sim->circle == MODEL_NO_CIRCLE)
        sim_fail(sim, "deadlock", "found: one that no request was told of");
    sim->circle = circle == MODEL_NO_CIRCLE ? circle : MODEL_ALLOWED_CIRCLE;
    sim->circles += circle != MODEL_NO_CIRCLE;
}

/* The model keeps to its rules, too. */
static void check_trees(struct sim *sim)
{
    if (!model_check_trees(sim->model) && !sim->failed)
        sim_fail(sim, "the model", "found: two grants that conflict by TREE");
}

/* Nobody is left waiting who could be granted, unless by other bounds. */
static void check_served(struct sim *sim)
{
    sim->bounds_new |= sim->current->kind == HOLD_BOUNDS;
    if (sim->profile.wide || model_is_behind(sim->model, sim->model->now_us))
        return;
    if (model_find_hungry(sim->model)) {
        sim_fail(sim, "the model", "found: one who can be served waits");
        return;
    }
    bool ready = model_find_ready(sim->model);
    if (ready && !sim->bounds_new)
        sim_fail(sim, "the model", "found: one who is ready still waits");
    sim->bounds_new = ready;
}

/* One call; NULL if it failed. */
static const struct hold_out *apply_once(struct sim *sim,
                                         const struct sim_command *c)
{
    struct hf_bytes record = hf_bytes(c->record, c->record_len);
    struct hold_counts before;

    hold_count(sim->engine, &before);
    if (sim_chance(sim, 20))
        hf_memory_fail_after(0); /* it was prepared: it needs none */
    const struct hold_out *out = hold_apply(sim->engine, record);
    hf_memory_fail_never();
    if (out == NULL) {
        sim_fail(sim, "apply", "found: it is no record");
        return NULL;
    }
    before.requests_dropped -= sim->model->dropped;
    before.requests_refused -= sim->model->full;
    model_apply(sim->model, &c->command, record);
    sim_compare(sim, out);
    if (!sim->failed)
        sim_compare_totals(sim, &before);
    if (!sim->failed)
        check_circle(sim);
    if (!sim->failed)
        check_served(sim);
    return sim->failed ? NULL : out;
}

static void apply(struct sim *sim, const struct sim_command *c)
{
    static struct refusal refusal;
    const struct hold_out *out;

    sim->current = &c->command;
    refusal.told = false;
    if (sim_chance(sim, 30))
        ask_refusal(sim, &c->command, &refusal);
    while ((out = apply_once(sim, c)) != NULL && out->code == HOLD_AGAIN)
        ;
    put_piece(&sim->records, c->record, c->record_len);
    sim->kinds[c->command.kind]++;
    sim->record_count++;
    if (c->command.kind == HOLD_FLUSH || c->command.kind == HOLD_RESTART)
        sim->model->past_count = 0; /* waits end in no order that is told */
    if (out != NULL && refusal.told)
        compare_refusal(sim, out, &refusal);
    if (!sim->failed)
        check_proof(
            sim, proof_apply(sim->proof, hf_bytes(c->record, c->record_len)));
}

/* Some bytes differ: the record is refused, or is another good one. */
static void apply_garbage(struct sim *sim, struct sim_command *c)
{
    struct hold_command decoded;
    size_t len = c->record_len;

    if (sim_chance(sim, 50))
        len = sim_below(sim, len);
    else
        c->record[sim_below(sim, len)] ^= (char)(1 + sim_below(sim, 255));
    if (hold_decode(hf_bytes(c->record, len), &decoded) == HF_OK)
        return;
    uint64_t before = hold_digest(sim->engine);
    if (hold_apply(sim->engine, hf_bytes(c->record, len)) != NULL)
        sim_fail(sim, "garbage", "found: it was applied");
    expect_digest(sim, "garbage changed something", before, sim->engine);
}

/* Several commands are prepared before the first is applied, as a server does
 * that writes them to its journal at once. */
static void step_write(struct sim *sim)
{
    static struct sim_command batch[BATCH_MAX];
    size_t count = sim_chance(sim, 80) ? 1 : 2 + sim_below(sim, BATCH_MAX - 1);

    for (size_t i = 0; i < count; i++) {
        sim_make_write(sim, &batch[i]);
        sim->current = &batch[i].command;
        if (sim_chance(sim, 3))
            starve_prepare(sim, &batch[i].command);
        if (hold_prepare(sim->engine, &batch[i].command) != HF_OK)
            sim_fail(sim, "prepare", "found: no memory");
    }
    for (size_t i = 0; i < count && !sim->failed; i++) {
        if (sim_chance(sim, 3)) {
            hold_forget(sim->engine, &batch[i].command);
            continue;
        }
        apply(sim, &batch[i]);
        sim->step++;
    }
    if (!sim->failed && sim_chance(sim, 1))
        apply_garbage(sim, &batch[0]);
}

/* Questions. */

static void step_ask(struct sim *sim)
{
    static struct sim_command ask;
    struct hold_command *c = &ask.command;
    bool look = sim_chance(sim, 10);

    sim_make_ask(sim, &ask);
    sim->current = c;
    uint64_t before = look ? hold_digest(sim->engine) : 0;
    if (hold_operations[c->kind].class == CLASS_LISTING) {
        if (c->kind == HOLD_KEY_SCAN)
            sim_compare_keys(sim, c);
        else if (c->kind == HOLD_WAITGRAPH)
            sim_compare_graph(sim, c);
        else
            sim_compare_list(sim, c);
    } else {
        const struct hold_out *out = hold_ask(sim->engine, c);
        bool told = model_ask(sim->model, c);
        if (told != (out != NULL))
            sim_fail(sim, "hold_ask", "found: it was %s",
                     told ? "not answered" : "answered too early");
        else if (told)
            sim_compare(sim, out);
        sim->early += !told;
    }
    if (look && !sim->failed)
        expect_digest(sim, "a question changed something", before, sim->engine);
    sim->kinds[c->kind]++;
    sim->step++;
}

/* In pages of any size. */
static void check_graph(struct sim *sim)
{
    static struct hold_command ask;

    ask.kind = HOLD_WAITGRAPH;
    ask.now_us = sim->model->now_us;
    ask.count = 1 + sim_below(sim, 50);
    if (!sim->failed)
        sim_compare_graph(sim, &ask);
}

static void run(struct sim *sim)
{
    while (sim->step < sim->step_count && !sim->failed) {
        if (sim->step >= sim->profile_until)
            sim_make_profile(sim);
        bool behind = model_is_behind(sim->model, sim->now_us);
        if (sim_below(sim, behind ? 20 : 300) == 0)
            step_image(sim);
        else if (sim_chance(sim, 15))
            step_ask(sim);
        else
            step_write(sim);
        if (!sim->failed && sim_below(sim, CHECK_INTERVAL) == 0) {
            check_engine(sim, sim->engine);
            check_trees(sim);
            check_graph(sim);
        }
        if (!sim->failed && sim_below(sim, CHECK_INTERVAL / 4) == 0) {
            sim->current = NULL;
            sim_compare_past(sim);
        }
    }
    if (sim->failed)
        return;
    compare_rebuilt(sim, "replay at the end");
    check_proof(sim, proof_finish(sim->proof, false));
    if (!sim->failed && sim->proved.digest != hold_digest(sim->engine))
        sim_fail(sim, "proof", "found: it ends in another state");
    sim_feed_check(sim);
}

/* The report. */

static void print_text(const struct sim *sim)
{
    printf("%llu steps with seed %llu: the engine and the model agree\n",
           (unsigned long long)sim->step, (unsigned long long)sim->seed);
    printf("commands: ");
    for (unsigned i = 0; i < HOLD_KINDS; i++) {
        if (sim->kinds[i] > 0)
            printf(" %s %llu;", hold_operations[i].name,
                   (unsigned long long)sim->kinds[i]);
    }
    printf("\nreplies:  ");
    for (unsigned i = 0; i < HOLD_CODE_COUNT; i++) {
        if (sim->codes[i] > 0)
            printf(" %s %llu;", hold_code_name((enum hold_code)i),
                   (unsigned long long)sim->codes[i]);
    }
    printf("\n%llu answers to waiters, %llu events, %llu refused unjournaled, "
           "%llu images, %llu replays, %llu times without memory, %llu edges, "
           "%llu of the past\n",
           (unsigned long long)sim->answers, (unsigned long long)sim->events,
           (unsigned long long)sim->refused, (unsigned long long)sim->images,
           (unsigned long long)sim->replays, (unsigned long long)sim->starved,
           (unsigned long long)sim->edges, (unsigned long long)sim->past);
    printf(
        "%llu requests dropped to make room, %llu found none, %llu questions "
        "came too early, %llu pages ended by their steps\n",
        (unsigned long long)sim->model->dropped,
        (unsigned long long)sim->model->full, (unsigned long long)sim->early,
        (unsigned long long)sim->cut);
    printf("digest %016llx\n", (unsigned long long)hold_digest(sim->engine));
}

static void print_figures(const struct sim *sim)
{
#define FIGURE_TEXT(figure, text) text,
    static const char *const texts[] = {MODEL_FIGURES(FIGURE_TEXT)};
#undef FIGURE_TEXT

    for (unsigned i = 0; i < MODEL_FIGURE_COUNT; i++)
        printf("%10llu  %s\n", (unsigned long long)sim->model->figures[i],
               texts[i]);
    printf("%10llu  steps after which there was a deadlock that is allowed\n",
           (unsigned long long)sim->circles);
}

static struct sim *start(uint64_t seed, uint64_t step_count)
{
    struct sim *sim = hf_alloc_zeroed(sizeof *sim);

    if (sim == NULL)
        abort();
    sim->seed = seed;
    sim->step_count = step_count;
    hf_random_init(&sim->random, seed);
    sim->engine = new_engine(sim);
    sim->model = model_new();
    sim->now_us = START_US;
    sim_make_names(sim);
    restart_proof(sim);
    sim_feed_open(sim);
    return sim;
}

static void stop(struct sim *sim)
{
    sim_feed_close();
    hold_free(sim->engine);
    model_free(sim->model);
    proof_free(sim->proof);
    for (size_t i = 0; i < SIM_RECENT; i++)
        hf_buf_destroy(&sim->recent[i]);
    hf_buf_destroy(&sim->image);
    hf_buf_destroy(&sim->records);
    hf_free(sim);
}

static int usage(void)
{
    fprintf(stderr, "usage: engine [--seed N] [--steps N] [--figures]\n");
    return 2;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1;
    uint64_t step_count = 100000;
    bool figures = false;

    for (int i = 1; i < argc; i++) {
        uint64_t *out = strcmp(argv[i], "--seed") == 0    ? &seed
                        : strcmp(argv[i], "--steps") == 0 ? &step_count
                                                          : NULL;
        if (strcmp(argv[i], "--figures") == 0)
            figures = true;
        else if (out == NULL || ++i == argc ||
                 hf_parse_u64(hf_bytes_text(argv[i]), out) != HF_OK)
            return usage();
    }
    struct sim *sim = start(seed, step_count);
    run(sim);
    if (figures)
        print_figures(sim);
    if (!sim->failed)
        print_text(sim);
    int result = sim->failed ? 1 : 0;
    stop(sim);
    return result;
}
