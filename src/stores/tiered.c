/* tiered.c - open and close, and reads through the levels.
 *
 * Why nobody reads what a change replaced, once the change has returned:
 *
 * A change writes to the store, then makes L3 let go, then L2 of this process
 * (which moves the stamp), then has the others do the same. A load takes the
 * stamp, then looks at L3, then at the store. If it saw anything old, it looked
 * before the change reached that level, so it took its stamp before the stamp
 * was moved, and what it found is not kept: hf_cache does that for L2, and L1
 * compares. L3 has the same in its token. The order matters: were the stamp
 * moved first, a load could take the new stamp and still find L3's old value.
 */
#include "holdfast/tiered.h"

#include "base/memory.h"
#include "stores/tiered_state.h"

#define L1_DEFAULT       256u
#define L2_DEFAULT_BYTES (UINT64_C(64) << 20)
#define TTL_DEFAULT_NS   UINT64_C(300000000000)
#define REDIS_PORT       6379u
#define CONNECTIONS      8u
#define CONNECTIONS_MAX  1024u
#define TIMEOUT_MS       1000u
#define LEASE_MS         2000u
#define LOAD_MS          5000u
#define WAIT_MAX_MS      600000u

/* ---- Blocks. ---- */

struct tiered_block *hf_tiered_block_new(const void *key, size_t key_len,
                                         const void *value, size_t len)
{
    struct tiered_block *block = hf_alloc(sizeof *block + key_len + len);

    if (block == NULL)
        return NULL;
    hf_u32_store(&block->references, 1, __ATOMIC_RELAXED); /* not shared yet */
    block->key_len = (uint32_t)key_len;
    block->len = len;
    memcpy(block->bytes, key, key_len);
    if (len > 0)
        memcpy(block->bytes + key_len, value, len);
    return block;
}

void hf_tiered_block_take(struct tiered_block *block)
{
    /* Relaxed: the caller knows of a reference that stays meanwhile. */
    hf_u32_add(&block->references, 1, __ATOMIC_RELAXED);
}

void hf_tiered_block_drop(struct tiered_block *block)
{
    /* Release and acquire: all reads come before the end. */
    if (block != NULL &&
        hf_u32_sub(&block->references, 1, __ATOMIC_ACQ_REL) == 1)
        hf_free(block);
}

/* L2's functions. */
static void l2_retain(void *context, void *value)
{
    (void)context;
    hf_tiered_block_take(value);
}

static void l2_release(void *context, void *value)
{
    (void)context;
    hf_tiered_block_drop(value);
}

static uint64_t l2_weigh(void *context, const void *key, size_t key_len,
                         const void *value)
{
    const struct tiered_block *block = value;

    (void)context, (void)key;
    return sizeof *block + 2 * key_len + block->len;
}

/* ---- Open and close. ---- */

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    const struct hf_tiered *tiered = (const struct hf_tiered *)listed;

    row->depth = hf_cache_count(tiered->l2);
}

static uint32_t or_default(uint32_t value, uint32_t by_default)
{
    return value != 0 ? value : by_default;
}

static void set_defaults(struct hf_tiered_opts *opts)
{
    opts->l1_count = or_default(opts->l1_count, L1_DEFAULT);
    opts->promote = or_default(opts->promote, 1);
    opts->l2_bytes = opts->l2_bytes != 0 ? opts->l2_bytes : L2_DEFAULT_BYTES;
    opts->ttl_ns = opts->ttl_ns != 0 ? opts->ttl_ns : TTL_DEFAULT_NS;
    opts->redis_port = (uint16_t)or_default(opts->redis_port, REDIS_PORT);
    opts->prefix = opts->prefix != NULL ? opts->prefix : "hf";
    opts->connections = or_default(opts->connections, CONNECTIONS);
    opts->timeout_ms = or_default(opts->timeout_ms, TIMEOUT_MS);
    opts->lease_ms = or_default(opts->lease_ms, LEASE_MS);
    opts->load_ms = or_default(opts->load_ms, LOAD_MS);
}

static bool are_valid(const struct hf_tiered_opts *opts)
{
    const struct hf_store *store = opts->store;

    if (store == NULL || store->read == NULL || store->apply == NULL)
        return false;
    if (opts->l1_count < 2 || opts->l1_count > HF_TIERED_L1_MAX ||
        (opts->l1_count & (opts->l1_count - 1)) != 0)
        return false;
    if (opts->l2_bytes > HF_CACHE_WEIGHT_MAX || opts->ttl_ns < HF_NS_PER_MS)
        return false;
    if (opts->prefix[0] == '\0' || strlen(opts->prefix) > HF_TIERED_PREFIX_MAX)
        return false;
    if (opts->lease_ms < HF_TIERED_LEASE_MIN ||
        opts->lease_ms > HF_TIERED_LEASE_MAX)
        return false;
    return opts->connections <= CONNECTIONS_MAX &&
           opts->timeout_ms <= WAIT_MAX_MS && opts->load_ms <= WAIT_MAX_MS;
}

static enum hf_status open_l2(struct hf_tiered *tiered)
{
    struct hf_cache_opts opts = {
        .name = tiered->opts.name,
        .max_weight = tiered->opts.l2_bytes,
        .weigh = l2_weigh,
        .ttl_ns = tiered->opts.ttl_ns,
        .negative_ttl_ns = tiered->opts.negative_ttl_ns,
        .release = l2_release,
        .retain = l2_retain,
        .clock = tiered->clock,
    };

    return hf_cache_open(&tiered->l2, &opts);
}

static void destroy(struct hf_tiered *tiered)
{
    uint32_t slot = 0;

    if (tiered->remote != NULL)
        hf_tiered_remote_close(tiered);
    for (struct tiered_near *near;
         (near = hf_locals_next(&tiered->nears, &slot)) != NULL;)
        hf_tiered_near_destroy(tiered, near);
    hf_locals_destroy(&tiered->nears);
    hf_cache_close(tiered->l2);
    hf_free(tiered->host);
    hf_free(tiered);
}

/* What the caller's options lead to may be gone tomorrow. */
static enum hf_status copy_opts(struct hf_tiered *tiered,
                                const struct hf_tiered_opts *opts)
{
    tiered->opts = *opts;
    tiered->opts.store = &tiered->store;
    tiered->store = *opts->store;
    memcpy(tiered->prefix, opts->prefix, strlen(opts->prefix) + 1);
    tiered->opts.prefix = tiered->prefix;
    if (opts->redis_host == NULL)
        return HF_OK;
    size_t len = strlen(opts->redis_host) + 1;
    tiered->host = hf_alloc(len);
    if (tiered->host == NULL)
        return HF_NOMEM;
    memcpy(tiered->host, opts->redis_host, len);
    tiered->opts.redis_host = tiered->host;
    return HF_OK;
}

enum hf_status hf_tiered_open(struct hf_tiered **out,
                              const struct hf_tiered_opts *given)
{
    if (out == NULL || given == NULL)
        return HF_INVALID;
    struct hf_tiered_opts opts = *given;
    set_defaults(&opts);
    if (!are_valid(&opts))
        return HF_INVALID;
    struct hf_tiered *tiered = hf_alloc_lines(sizeof *tiered);
    if (tiered == NULL)
        return HF_NOMEM;
    tiered->clock = opts.clock != NULL ? opts.clock : hf_clock_system();
    tiered->seed = hf_hash_seed((struct hf_hash_seed){{0, 0}});
    enum hf_status status =
        hf_locals_init(&tiered->nears, sizeof(struct tiered_near));
    if (status != HF_OK) {
        hf_free(tiered);
        return status;
    }
    status = copy_opts(tiered, &opts);
    if (status == HF_OK)
        status = open_l2(tiered);
    if (status == HF_OK && opts.redis_host != NULL)
        status = hf_tiered_remote_open(tiered);
    if (status != HF_OK) {
        destroy(tiered);
        return status;
    }
    hf_listed_add(&tiered->listed, "tiered", opts.name, fill);
    tiered->opts.name = tiered->listed.name;
    *out = tiered;
    return HF_OK;
}

void hf_tiered_shutdown(struct hf_tiered *tiered)
{
    if (tiered == NULL)
        return;
    /* Release: before the wake-ups, which those who wait look after. */
    hf_u32_store(&tiered->shut, 1, __ATOMIC_RELEASE);
    hf_cache_shutdown(tiered->l2);
    if (tiered->remote != NULL)
        hf_tiered_remote_shutdown(tiered->remote);
}

void hf_tiered_close(struct hf_tiered *tiered)
{
    if (tiered == NULL)
        return;
    hf_tiered_shutdown(tiered);
    hf_listed_remove(&tiered->listed);
    destroy(tiered);
}

/* ---- Loading. ---- */

/* What the store's read leaves. */
struct fetch {
    const void *key;
    size_t key_len;
    struct tiered_block *block;
    bool called;
};

static void fetched(void *arg, const void *value, size_t len)
{
    struct fetch *fetch = arg;

    fetch->called = true;
    fetch->block = hf_tiered_block_new(fetch->key, fetch->key_len, value, len);
}

static enum hf_status read_store(struct hf_tiered *tiered, const void *key,
                                 size_t key_len, struct tiered_block **out)
{
    struct fetch fetch = {.key = key, .key_len = key_len};

    tiered_count(&tiered->store_reads);
    enum hf_status status = tiered->store.read(tiered->store.context, key,
                                               key_len, fetched, &fetch);
    if (status != HF_OK) {
        hf_tiered_block_drop(fetch.block);
        return status;
    }
    *out = fetch.block;
    if (fetch.block == NULL)
        return fetch.called ? HF_NOMEM : HF_FAILED;
    return HF_OK;
}

struct load {
    struct hf_tiered *tiered;
    uint64_t deadline_ns;
    bool has_run; /* it was this thread that loaded */
};

/* Nobody else loads it: this one does, and tells. */
static enum hf_status load_and_fill(struct hf_tiered *tiered, const void *key,
                                    size_t key_len,
                                    const struct tiered_ticket *ticket,
                                    struct tiered_block **out)
{
    enum hf_status status = read_store(tiered, key, key_len, out);

    hf_tiered_remote_fill(tiered->remote, key, key_len, ticket,
                          status == HF_OK ? *out : NULL);
    return status;
}

static enum hf_status load_remote(struct load *load, const void *key,
                                  size_t key_len, struct tiered_block **out,
                                  uint64_t *ttl_ns)
{
    struct hf_tiered *tiered = load->tiered;
    uint64_t patient_until_ns =
        hf_clock_now_ns(tiered->clock) + tiered->opts.load_ms * HF_NS_PER_MS;
    struct tiered_ticket ticket;

    for (;;) {
        switch (hf_tiered_remote_claim(tiered->remote, key, key_len, &ticket,
                                       out)) {
        case TIERED_FOUND:
            *ttl_ns = ticket.ttl_ns;
            return HF_OK;
        case TIERED_LOAD:
            return load_and_fill(tiered, key, key_len, &ticket, out);
        case TIERED_DOWN:
            return read_store(tiered, key, key_len, out);
        case TIERED_WAIT:
            break;
        }
        uint64_t now_ns = hf_clock_now_ns(tiered->clock);
        if (tiered_is_shut(tiered))
            return HF_CLOSED;
        if (now_ns >= load->deadline_ns)
            return HF_TIMEOUT;
        /* Whoever loads is stuck: the store is asked once more. */
        if (now_ns >= patient_until_ns)
            return read_store(tiered, key, key_len, out);
        hf_tiered_remote_wait(tiered->remote, &ticket,
                              load->deadline_ns < patient_until_ns
                                  ? load->deadline_ns
                                  : patient_until_ns);
    }
}

/* L2's loader: one at a time for a key of this process. */
static enum hf_status load_l2(void *context, const void *key, size_t key_len,
                              struct hf_cache_loaded *out)
{
    struct load *load = context;
    struct tiered_block *block = NULL;
    uint64_t ttl_ns = 0;

    load->has_run = true;
    enum hf_status status =
        load->tiered->remote != NULL
            ? load_remote(load, key, key_len, &block, &ttl_ns)
            : read_store(load->tiered, key, key_len, &block);

    out->value = block;
    out->ttl_ns = ttl_ns;
    return status;
}

/* ---- Reading. ---- */

/* A function of the caller's gets the value while a reference keeps it. */
static void show(struct tiered_block *block,
                 void (*found)(void *arg, const void *value, size_t len),
                 void *arg)
{
    found(arg, tiered_value(block), block->len);
    hf_tiered_block_drop(block);
}

/* Without L1 and L2: this process may not have heard of a change. */
static enum hf_status read_direct(struct hf_tiered *tiered, const void *key,
                                  size_t key_len, struct tiered_block **out)
{
    tiered_count(&tiered->direct_reads);
    enum hf_status status =
        hf_tiered_remote_get(tiered->remote, key, key_len, out);
    return status == HF_OK ? HF_OK : read_store(tiered, key, key_len, out);
}

/* Threads begin one after the other, so that of the first hits of many as well
 * only one of so many is kept. */
static void promote(struct hf_tiered *tiered, struct tiered_near *near,
                    struct tiered_block *block, uint64_t stamp,
                    uint64_t until_ns)
{
    uint32_t every = tiered->opts.promote;

    if (tiered->opts.no_l1)
        return;
    if (near->turn == 0) /* Relaxed: nothing hangs on who is first. */
        near->turn =
            1 + hf_u32_add(&tiered->turns, 1, __ATOMIC_RELAXED) % every;
    if (--near->turn > 0)
        return;
    near->turn = every;
    hf_tiered_near_keep(tiered, near, block, stamp, until_ns);
}

static enum hf_status read_l2(struct hf_tiered *tiered,
                              struct tiered_near *near, const void *key,
                              size_t key_len, uint64_t stamp,
                              uint64_t deadline_ns, struct tiered_block **out)
{
    struct load load = {.tiered = tiered, .deadline_ns = deadline_ns};
    struct hf_cache_found found;
    void *value = NULL;
    enum hf_status status = hf_cache_look(tiered->l2, key, key_len, &found);

    if (status == HF_OK) {
        /* Relaxed: this thread alone writes it. */
        hf_u64_store(&near->l2_hits,
                     hf_u64_load(&near->l2_hits, __ATOMIC_RELAXED) + 1,
                     __ATOMIC_RELAXED);
        promote(tiered, near, found.value, stamp, found.expires_ns);
        *out = found.value;
        return HF_OK;
    }
    if (status != HF_NOTFOUND)
        return status;
    for (;;) {
        status = hf_cache_get_or_load(tiered->l2, key, key_len, load_l2, &load,
                                      deadline_ns, &value);
        /* Another's load ran into its own deadline, which is not ours. */
        if (status != HF_TIMEOUT || load.has_run ||
            hf_clock_now_ns(tiered->clock) >= deadline_ns)
            break;
    }
    *out = value;
    return status;
}

enum hf_status hf_tiered_read(struct hf_tiered *tiered, const void *key,
                              size_t key_len, uint64_t deadline_ns,
                              void (*found)(void *arg, const void *value,
                                            size_t value_len),
                              void *arg)
{
    struct tiered_block *block = NULL;
    enum hf_status status;

    if (tiered == NULL || key == NULL || key_len == 0 ||
        key_len > HF_STORE_KEY_MAX || found == NULL)
        return HF_INVALID;
    if (tiered_is_shut(tiered))
        return HF_CLOSED;
    uint64_t now_ns = hf_clock_now_ns(tiered->clock);
    if (tiered->remote != NULL &&
        !hf_tiered_remote_leased(tiered->remote, now_ns)) {
        status = read_direct(tiered, key, key_len, &block);
        if (status == HF_OK)
            show(block, found, arg);
        return status;
    }
    struct tiered_near *near =
        hf_locals_mine(&tiered->nears, sizeof(struct tiered_near));
    if (near == NULL)
        return HF_NOMEM;
    uint64_t stamp = hf_cache_stamp(tiered->l2, key, key_len);
    block = hf_tiered_near_find(tiered, near, key, key_len, stamp, now_ns);
    if (block != NULL) {
        /* No reference: that would be a write to shared memory. */
        hf_u64_store(&near->l1_hits,
                     hf_u64_load(&near->l1_hits, __ATOMIC_RELAXED) + 1,
                     __ATOMIC_RELAXED);
        near->busy++;
        found(arg, tiered_value(block), block->len);
        near->busy--;
        return HF_OK;
    }
    status = read_l2(tiered, near, key, key_len, stamp, deadline_ns, &block);
    if (status == HF_OK)
        show(block, found, arg);
    return status;
}

struct copy {
    void *out;
    size_t cap;
    size_t *len;
};

static void copy_out(void *arg, const void *value, size_t len)
{
    struct copy *copy = arg;

    *copy->len = len;
    if (len > 0 && len <= copy->cap)
        memcpy(copy->out, value, len);
}

enum hf_status hf_tiered_get(struct hf_tiered *tiered, const void *key,
                             size_t key_len, uint64_t deadline_ns, void *out,
                             size_t cap, size_t *len)
{
    struct copy copy = {.out = out, .cap = cap, .len = len};

    if (len == NULL || (out == NULL && cap > 0))
        return HF_INVALID;
    enum hf_status status =
        hf_tiered_read(tiered, key, key_len, deadline_ns, copy_out, &copy);
    return status == HF_OK && *len > cap ? HF_MORE : status;
}

/* ---- Figures. ---- */

void hf_tiered_stats(struct hf_tiered *tiered, struct hf_tiered_stats *out)
{
    struct hf_cache_stats l2;
    uint32_t slot = 0;

    if (tiered == NULL || out == NULL)
        return;
    hf_cache_stats(tiered->l2, &l2);
    *out = (struct hf_tiered_stats){
        .store_reads = hf_u64_load(&tiered->store_reads, __ATOMIC_RELAXED),
        .direct_reads = hf_u64_load(&tiered->direct_reads, __ATOMIC_RELAXED),
        .changes = hf_u64_load(&tiered->changes, __ATOMIC_RELAXED),
        .l2_hits = l2.hits_negative / 2, /* a read looks twice */
        .l2_count = l2.count,
        .l2_bytes = l2.weight,
        .leased = true,
    };
    for (struct tiered_near *near;
         (near = hf_locals_next(&tiered->nears, &slot)) != NULL;) {
        out->l1_hits += hf_u64_load(&near->l1_hits, __ATOMIC_RELAXED);
        out->l2_hits += hf_u64_load(&near->l2_hits, __ATOMIC_RELAXED);
    }
    if (tiered->remote != NULL) {
        hf_tiered_remote_stats(tiered->remote, out);
        out->leased = hf_tiered_remote_leased(tiered->remote,
                                              hf_clock_now_ns(tiered->clock));
    }
}
