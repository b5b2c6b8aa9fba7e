/* proof_lock.c - what the events of locks must be, one after the other. */
#include "base/little.h"
#include "cli/proof_parts.h"

/* A grant. */
struct held {
    struct hf_named named; /* token and name */
    uint64_t expires_us;   /* up to a millisecond early, if asked for in ms */
    uint64_t count;
    bool is_timed;  /* nothing but its own time ends it */
    bool is_sealed; /* wounded or revoked: that changes its time */
};

/* A name. */
struct used {
    struct hf_named named;
    uint32_t grants : 31;
    bool unseen : 1; /* what happened to it was not compared, as more was over:
                      * its grants may last longer than is known */
    uint32_t mode;
};

#define KEY_MAX (8 + HOLD_NAME_MAX)

static struct hf_bytes key_of(char out[KEY_MAX], uint64_t token,
                              struct hf_bytes name)
{
    hf_put_u64(out, token);
    memcpy(out + 8, name.data, name.len);
    return hf_bytes(out, 8 + name.len);
}

enum hf_status proof_locks_open(struct proof_locks *locks,
                                struct hf_texts *texts,
                                struct hf_hash_seed seed, size_t *account)
{
    if (hf_index_init(&locks->grants, sizeof(struct held), texts, seed,
                      account) != HF_OK)
        return HF_NOMEM;
    return hf_index_init(&locks->names, sizeof(struct used), texts, seed,
                         account);
}

void proof_locks_close(struct proof_locks *locks)
{
    hf_index_destroy(&locks->grants);
    hf_index_destroy(&locks->names);
}

void proof_locks_clear(struct proof_locks *locks)
{
    hf_index_clear(&locks->grants);
    hf_index_clear(&locks->names);
}

static struct held *find(struct proof *proof, uint64_t token,
                         struct hf_bytes name)
{
    char key[KEY_MAX];
    const struct hf_index *grants = &proof->locks.grants;
    uint32_t number = hf_index_find(grants, key_of(key, token, name));

    return number == 0 ? NULL : hf_index_at(grants, number);
}

static struct used *find_used(struct proof *proof, struct hf_bytes name)
{
    uint32_t number = hf_index_find(&proof->locks.names, name);

    return number == 0 ? NULL : hf_index_at(&proof->locks.names, number);
}

/* Books a grant; NULL without memory. */
static struct held *add(struct proof *proof, uint64_t token,
                        struct hf_bytes name, uint32_t mode)
{
    char key[KEY_MAX];
    struct proof_locks *locks = &proof->locks;
    struct used *used = find_used(proof, name);

    if (used == NULL) {
        uint32_t made = hf_index_add(&locks->names, name);
        if (made == 0)
            return NULL;
        used = hf_index_at(&locks->names, made);
    }
    used->grants++;
    used->mode = mode;
    uint32_t number = hf_index_add(&locks->grants, key_of(key, token, name));
    return number == 0 ? NULL : hf_index_at(&locks->grants, number);
}

static void drop(struct proof *proof, uint64_t token, struct hf_bytes name)
{
    char key[KEY_MAX];
    struct proof_locks *locks = &proof->locks;

    hf_index_remove(&locks->grants,
                    hf_index_find(&locks->grants, key_of(key, token, name)));
    if (--find_used(proof, name)->grants == 0)
        hf_index_remove(&locks->names, hf_index_find(&locks->names, name));
}

static enum hf_status granted(struct proof *proof, const struct hold_event *e)
{
    const struct used *used = find_used(proof, e->name);

    if (used != NULL && (e->mode == 0 || used->mode != e->mode))
        return proof_wrong(proof,
                           "lock '%.*s' is granted with token %llu while "
                           "another hold has not ended",
                           HF_SHOW(e->name), (unsigned long long)e->token);
    if (find(proof, e->token, e->name) != NULL || e->token > e->seq)
        return proof_wrong(proof, "lock '%.*s' has the token %llu twice",
                           HF_SHOW(e->name), (unsigned long long)e->token);
    struct held *held = add(proof, e->token, e->name, e->mode);
    if (held == NULL)
        return HF_NOMEM;
    held->count = 1;
    return HF_OK;
}

static enum hf_status expired(struct proof *proof, const struct hold_event *e,
                              const struct held *held)
{
    uint64_t now_us = hold_now_us(proof->engine);
    uint64_t expires_us = now_us - e->lag_us;

    if (held->is_timed && !find_used(proof, e->name)->unseen &&
        (e->lag_us > now_us || expires_us < held->expires_us ||
         expires_us - held->expires_us >= 1000))
        return proof_wrong(proof,
                           "lock '%.*s' expires at %llu us, not at its time",
                           HF_SHOW(e->name), (unsigned long long)expires_us);
    drop(proof, e->token, e->name);
    return HF_OK;
}

enum hf_status proof_lock_event(struct proof *proof, const struct hold_event *e)
{
    struct held *held = find(proof, e->token, e->name);

    if (e->kind == EVENT_LOCK_GRANTED)
        return granted(proof, e);
    if (held == NULL)
        return proof_wrong(proof,
                           "event %llu is about lock '%.*s', which is not "
                           "held with token %llu",
                           (unsigned long long)e->seq, HF_SHOW(e->name),
                           (unsigned long long)e->token);
    if (e->kind == EVENT_LOCK_EXPIRED)
        return expired(proof, e, held);
    if (e->kind == EVENT_LOCK_REENTERED)
        held->count++;
    else if (e->kind == EVENT_LOCK_WOUNDED)
        held->is_sealed = true, held->is_timed = false;
    else if (e->kind == EVENT_LOCK_DOWNGRADED)
        find_used(proof, e->name)->mode = e->mode;
    else if (e->kind == EVENT_LOCK_LOST ||
             (e->kind == EVENT_LOCK_RELEASED && --held->count == 0))
        drop(proof, e->token, e->name);
    return HF_OK;
}

enum hf_status proof_lock_compare(struct proof *proof, struct hf_bytes name)
{
    const struct hold_out *out = proof_ask(proof, HOLD_LOCK_INFO, name);
    struct used *used = find_used(proof, name);

    if (out == NULL) { /* more is over */
        if (used != NULL)
            used->unseen = true;
        return HF_OK;
    }
    uint64_t token = out->code != HOLD_OK
                         ? 0
                         : (uint64_t)reply_get_number(out->body, FIELD_TOKEN);
    if ((token != 0) != (used != NULL))
        return proof_wrong(proof,
                           "lock '%.*s' is %s, but its events say otherwise",
                           HF_SHOW(name), token != 0 ? "held" : "free");
    if (used == NULL)
        return HF_OK;
    struct held *held = find(proof, token, name);
    bool single = reply_get_number(out->body, FIELD_NAMES) == 0;
    if (held == NULL || (single && held->count != (uint64_t)reply_get_number(
                                                      out->body, FIELD_COUNT)))
        return proof_wrong(proof,
                           "lock '%.*s' has another token or count than given",
                           HF_SHOW(name));
    held->is_timed = single && !held->is_sealed && used->grants == 1 &&
                     reply_get_number(out->body, FIELD_SESSION) == 0;
    held->expires_us =
        hold_now_us(proof->engine) +
        (uint64_t)reply_get_number(out->body, FIELD_EXPIRES_MS) * 1000;
    return HF_OK;
}

enum hf_status proof_lock_book(void *context, const struct hold_held *lock)
{
    struct held *held = add(context, lock->token, lock->name, lock->mode);

    if (held == NULL)
        return HF_NOMEM;
    held->count = lock->count;
    held->expires_us = lock->expires_us;
    return HF_OK;
}
