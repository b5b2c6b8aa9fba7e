/* limiter_cell.c - the state of a cell that the caller has locked.
 *
 * While there are holds on a key its words lie in a record beside the list of
 * the holds, and the cell's first word leads there: see limiter_hold.c.
 */
#include "flow/limiter_hold.h"
#include "flow/limiter_state.h"

void hf_limiter_cell_open(struct hf_limiter *limiter, struct limiter_cell *cell,
                          uint32_t number, struct limiter_open *open)
{
    /* Relaxed, here and below: under the cell's lock. */
    open->cell = cell;
    open->number = number;
    open->version = hf_u32_load(&cell->version, __ATOMIC_RELAXED);
    open->holds = NULL;
    limiter_version_plan(limiter_version_at(limiter, open->version),
                         &open->plan);
    for (uint32_t i = 0; i < CELL_WORDS; i++)
        open->words.word[i] = hf_u64_load(&cell->words[i], __ATOMIC_RELAXED);
    if (hf_u32_load(&cell->identity, __ATOMIC_RELAXED) & IDENTITY_HOLDS) {
        open->holds = (struct limiter_holds *)(uintptr_t)open->words.word[0];
        open->words = open->holds->words;
    }
}

void hf_limiter_cell_store(const struct limiter_open *open)
{
    struct limiter_cell *cell = open->cell;

    if (open->holds != NULL) {
        open->holds->words = open->words;
        return;
    }
    for (uint32_t i = 0; i < CELL_WORDS; i++)
        hf_u64_store(&cell->words[i], open->words.word[i], __ATOMIC_RELAXED);
}

bool hf_limiter_up_to_date(struct hf_limiter *limiter,
                           const struct limiter_open *open,
                           const struct hf_limiter_ask *ask)
{
    if (ask->own != NULL)
        return hf_limiter_version_is(limiter_version_at(limiter, open->version),
                                     ask->own);
    return limiter_rule_version(limiter, ask->rule) == open->version;
}

/* Of the same rule, or of what it was before: what was spent counts. */
static bool same_rule(const struct limiter_version *a,
                      const struct limiter_version *b)
{
    /* Relaxed: both have users. */
    return hf_u32_load(&a->generation, __ATOMIC_RELAXED) ==
           hf_u32_load(&b->generation, __ATOMIC_RELAXED);
}

static enum hf_status convert(struct hf_limiter *limiter,
                              struct limiter_open *open, uint32_t version,
                              uint64_t now_ns)
{
    const struct limiter_version *to = limiter_version_at(limiter, version);
    const struct limiter_version *from =
        limiter_version_at(limiter, open->version);
    struct hf_rate_plan plan;
    uint64_t bytes = hf_words_bytes(&open->plan, &open->words);

    limiter_version_plan(to, &plan);
    if (!same_rule(from, to)) {
        /* of a rule that was removed */
        hf_words_clear(&open->plan, &open->words);
        if (open->holds != NULL)
            hf_limiter_holds_forget(limiter, open);
    } else if ((open->plan.words != 0 || plan.limit > open->plan.limit) &&
               !hf_words_fit(&plan, &(struct rate_state){{0, 0}},
                             &limiter->array_bytes, limiter->log_bytes_max)) {
        return HF_FULL;
    } else if (hf_words_convert(&open->plan, &plan, &open->words, now_ns) !=
               HF_OK) {
        return HF_NOMEM;
    }
    open->plan = plan;
    hf_u64_add(&limiter->array_bytes,
               hf_words_bytes(&open->plan, &open->words) - bytes,
               __ATOMIC_RELAXED); /* a figure */
    hf_limiter_cell_store(open);
    hf_u32_store(&open->cell->version, version, __ATOMIC_RELAXED);
    return HF_OK;
}

enum hf_status hf_limiter_cell_refresh(struct hf_limiter *limiter,
                                       struct limiter_local *local,
                                       struct limiter_open *open,
                                       const struct hf_limiter_ask *ask,
                                       uint64_t now_ns)
{
    if (!hf_limiter_up_to_date(limiter, open, ask)) {
        uint32_t version;
        enum hf_status status =
            hf_limiter_version_use(limiter, local, ask, &version);
        if (status != HF_OK)
            return status;
        uint32_t unused = version; /* of the two, the cell keeps one */
        if (version != open->version) {
            status = convert(limiter, open, version, now_ns);
            unused = status == HF_OK ? open->version : version;
        }
        hf_limiter_version_drop(limiter, unused);
        if (status != HF_OK)
            return status;
        open->version = version;
    }
    if (open->holds != NULL && hf_limiter_holds_expire(limiter, open, now_ns))
        hf_limiter_cell_store(open);
    return HF_OK;
}

void hf_limiter_cell_clear(struct hf_limiter *limiter,
                           struct limiter_open *open)
{
    hf_u64_sub(&limiter->array_bytes, hf_words_bytes(&open->plan, &open->words),
               __ATOMIC_RELAXED); /* a figure */
    hf_words_clear(&open->plan, &open->words);
    if (open->holds != NULL)
        hf_limiter_holds_forget(limiter, open);
}
