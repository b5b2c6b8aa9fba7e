/* tiered_listen.c - the thread that hears what other processes change.
 *
 *   connect, subscribe
 *   forget all that is near: changes may have been missed
 *   loop   a message: deal with it, answer     a third of a lease: heartbeat
 *          its own heartbeat: the lease begins anew, from when that was sent
 *   on any error: no lease; connect again after a pause
 *
 * Two connections: one that listens and can do nothing else, and one to speak.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "holdfast/backoff.h"
#include "stores/tiered_link.h"

#define PAUSE_NS     (10 * HF_NS_PER_MS)
#define PAUSE_MAX_NS (1000 * HF_NS_PER_MS)
#define BEATS        3u /* in a lease */
#define BEATS_KNOWN  8u /* whose time of sending is remembered */

struct listener {
    struct tiered_remote *remote;
    redisContext *ears;
    struct link_wire *mouth;
    uint64_t beat;                 /* number of the last heartbeat */
    uint64_t sent_ns[BEATS_KNOWN]; /* by number */
    uint64_t beat_at_ns;           /* when the next is due */
};

static uint64_t now_of(const struct listener *listener)
{
    return hf_clock_now_ns(listener->remote->clock);
}

static bool is_stopped(const struct tiered_remote *remote)
{
    /* Acquire: whoever stops has done all else before. */
    return hf_u32_load(&remote->stop, __ATOMIC_ACQUIRE) != 0;
}

/* ---- Connecting. ---- */

static bool subscribe(struct listener *listener)
{
    const struct tiered_remote *remote = listener->remote;
    struct hf_bytes words[] = {hf_bytes_text("SUBSCRIBE"),
                               hf_bytes_text(remote->channel),
                               hf_bytes_text(remote->answers)};

    listener->ears = hf_link_connect(remote);
    if (listener->ears == NULL)
        return false;
    redisReply *reply = hf_link_command(listener->ears, words, 3);
    bool first = reply != NULL && reply->type == REDIS_REPLY_ARRAY;
    freeReplyObject(reply);
    void *second = NULL;
    bool both = first && redisGetReply(listener->ears, &second) == REDIS_OK;
    freeReplyObject(second);
    return both;
}

static void hang_up(struct listener *listener)
{
    struct tiered_remote *remote = listener->remote;

    /* Release: nothing of what follows is seen before. */
    if (hf_u64_swap(&remote->lease_until_ns, 0, __ATOMIC_ACQ_REL) != 0)
        tiered_count(&remote->leases_lost);
    if (listener->ears != NULL)
        redisFree(listener->ears);
    if (listener->mouth != NULL)
        hf_link_wire_close(listener->mouth);
    listener->ears = NULL;
    listener->mouth = NULL;
}

static bool connect_both(struct listener *listener)
{
    listener->mouth = hf_link_wire_open(listener->remote);
    if (listener->mouth == NULL || !subscribe(listener))
        return false;
    listener->beat_at_ns = now_of(listener);
    /* From here on all is heard; what came before may have been missed. */
    return hf_cache_clear(listener->remote->tiered->l2) == HF_OK;
}

/* ---- Speaking. ---- */

static bool beat(struct listener *listener)
{
    struct tiered_remote *remote = listener->remote;
    uint64_t lease_ms = remote->tiered->opts.lease_ms;
    char message[2 + 2 * LINK_HEX], lease[24];

    listener->beat++;
    listener->sent_ns[listener->beat % BEATS_KNOWN] = now_of(listener);
    (void)snprintf(message, sizeof message, "H%s%016" PRIx64, remote->id,
                   listener->beat);
    (void)snprintf(lease, sizeof lease, "%" PRIu64, lease_ms);
    struct hf_bytes args[] = {hf_bytes_text(remote->id), hf_bytes_text(lease),
                              hf_bytes_text(remote->channel),
                              hf_bytes_text(message)};
    redisReply *reply;
    enum hf_status status = hf_link_run(listener->mouth, LINK_BEAT,
                                        hf_bytes_text(""), args, 4, &reply);
    listener->beat_at_ns = now_of(listener) + lease_ms * HF_NS_PER_MS / BEATS;
    freeReplyObject(reply);
    return status == HF_OK;
}

static bool answer(struct listener *listener, const char *to, const char *seq)
{
    const struct tiered_remote *remote = listener->remote;
    char channel[LINK_NAME_MAX], text[2 * LINK_HEX + 1];

    (void)snprintf(channel, sizeof channel, "%s:a:%s",
                   remote->tiered->opts.prefix, to);
    (void)snprintf(text, sizeof text, "%s%s", seq, remote->id);
    struct hf_bytes words[] = {hf_bytes_text("PUBLISH"), hf_bytes_text(channel),
                               hf_bytes_text(text)};
    redisReply *reply = hf_link_command(listener->mouth->redis, words, 3);
    freeReplyObject(reply);
    return reply != NULL;
}

/* ---- Hearing. ---- */

/* Those who wait for a load look again. */
static void end_waits(struct tiered_remote *remote)
{
    /* Release: pairs with the load of whoever is about to wait. */
    hf_u32_add(&remote->heard, 1, __ATOMIC_RELEASE);
    hf_event_wake_all(&remote->heard_event);
}

static void heard_beat(struct listener *listener, const char *seq)
{
    struct tiered_remote *remote = listener->remote;
    uint64_t number = strtoull(seq, NULL, 16);
    uint64_t lease_ns = remote->tiered->opts.lease_ms * HF_NS_PER_MS;

    if (number > listener->beat || listener->beat - number >= BEATS_KNOWN)
        return;
    uint64_t until_ns =
        listener->sent_ns[number % BEATS_KNOWN] + lease_ns / 10 * 9;
    /* Release: all that was heard before has been dealt with. */
    hf_u64_store(&remote->lease_until_ns, until_ns, __ATOMIC_RELEASE);
    hf_event_wake_all(&remote->leased);
}

static bool heard_change(struct listener *listener, const char *id,
                         const char *seq, const char *key, size_t key_len)
{
    struct tiered_remote *remote = listener->remote;

    if (strcmp(id, remote->id) == 0)
        return true; /* whoever made it has seen to this process */
    /* It cannot be out of memory here: this thread has cleared it before. */
    if (hf_cache_remove(remote->tiered->l2, key, key_len) == HF_NOMEM)
        return false;
    tiered_count(&remote->changes_heard);
    end_waits(remote);
    return answer(listener, id, seq);
}

/* False: the connections must be made anew. */
static bool deal_with(struct listener *listener, const char *text, size_t len)
{
    struct tiered_remote *remote = listener->remote;
    char id[LINK_HEX + 1] = {0}, seq[LINK_HEX + 1] = {0};
    const size_t head = 1 + 2 * LINK_HEX;

    if (len == 1 && text[0] == 'L') {
        end_waits(remote);
        return true;
    }
    if (len < head)
        return true; /* none of ours */
    memcpy(id, text + 1, LINK_HEX);
    memcpy(seq, text + 1 + LINK_HEX, LINK_HEX);
    if (text[0] == 'H' && strcmp(id, remote->id) == 0)
        heard_beat(listener, seq);
    if (text[0] == 'C')
        return heard_change(listener, id, seq, text + head, len - head);
    return true;
}

static void deal_with_answer(struct listener *listener, const char *text,
                             size_t len)
{
    char seq[LINK_HEX + 1] = {0}, id[LINK_HEX + 1] = {0};

    if (len != 2 * LINK_HEX)
        return;
    memcpy(seq, text, LINK_HEX);
    memcpy(id, text + LINK_HEX, LINK_HEX);
    hf_link_answer(listener->remote, strtoull(seq, NULL, 16), id);
}

/* A message is an array: "message", the channel, the text. */
static bool take(struct listener *listener, const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
        reply->element[1]->type != REDIS_REPLY_STRING ||
        reply->element[2]->type != REDIS_REPLY_STRING)
        return true;
    const redisReply *text = reply->element[2];
    if (strcmp(reply->element[1]->str, listener->remote->answers) == 0) {
        deal_with_answer(listener, text->str, (size_t)text->len);
        return true;
    }
    return deal_with(listener, text->str, (size_t)text->len);
}

static bool hear(struct listener *listener)
{
    if (redisBufferRead(listener->ears) != REDIS_OK)
        return false;
    for (;;) {
        void *reply = NULL;
        if (redisReaderGetReply(listener->ears->reader, &reply) != REDIS_OK)
            return false;
        if (reply == NULL)
            return true;
        bool went_well = take(listener, reply);
        freeReplyObject(reply);
        if (!went_well)
            return false;
    }
}

/* ---- The thread. ---- */

/* Until something is heard, or the time. HF_OK: heard. */
static enum hf_status sleep_until(struct listener *listener, int fd,
                                  uint64_t until_ns)
{
    struct pollfd fds[2] = {
        {.fd = listener->remote->wake_fd, .events = POLLIN},
        {.fd = fd, .events = POLLIN},
    };
    uint64_t now_ns = now_of(listener);
    uint64_t left_ms =
        until_ns > now_ns ? (until_ns - now_ns) / HF_NS_PER_MS + 1 : 0;
    int count = poll(fds, fd < 0 ? 1 : 2, (int)left_ms);

    if (count < 0 && errno != EINTR)
        return HF_IO;
    return fd >= 0 && count > 0 && fds[1].revents != 0 ? HF_OK : HF_TIMEOUT;
}

/* Until something breaks. */
static void listen_on(struct listener *listener, struct hf_backoff *backoff)
{
    while (!is_stopped(listener->remote)) {
        if (now_of(listener) >= listener->beat_at_ns && !beat(listener))
            return;
        enum hf_status status =
            sleep_until(listener, listener->ears->fd, listener->beat_at_ns);
        if (status == HF_IO || (status == HF_OK && !hear(listener)))
            return;
        if (status == HF_OK)
            hf_backoff_reset(backoff);
    }
}

static void say_goodbye(struct listener *listener)
{
    if (listener->mouth == NULL)
        return;
    char members[LINK_NAME_MAX + 2];
    (void)snprintf(members, sizeof members, "%s:m", listener->mouth->base);
    struct hf_bytes words[] = {hf_bytes_text("ZREM"), hf_bytes_text(members),
                               hf_bytes_text(listener->remote->id)};
    freeReplyObject(hf_link_command(listener->mouth->redis, words, 3));
}

static void run(void *argument)
{
    struct listener listener = {.remote = argument};
    struct hf_backoff backoff;
    uint64_t pause_ns = PAUSE_MAX_NS;

    (void)hf_backoff_init(
        &backoff,
        &(struct hf_backoff_opts){.base_ns = PAUSE_NS, .cap_ns = PAUSE_MAX_NS});
    while (!is_stopped(listener.remote)) {
        if (connect_both(&listener))
            listen_on(&listener, &backoff);
        if (is_stopped(listener.remote))
            say_goodbye(&listener);
        hang_up(&listener);
        uint64_t now_ns = now_of(&listener);
        (void)hf_backoff_next(&backoff, now_ns, HF_FOREVER, &pause_ns);
        (void)sleep_until(&listener, -1, now_ns + pause_ns);
    }
}

enum hf_status hf_link_listen(struct tiered_remote *remote)
{
    remote->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (remote->wake_fd < 0)
        return HF_NOMEM;
    enum hf_status status =
        hf_thread_start(&remote->thread, "hf-tiered", run, remote);
    remote->listening = status == HF_OK;
    return status;
}

void hf_link_stop(struct tiered_remote *remote)
{
    uint64_t one = 1;

    if (remote->listening) {
        /* Release: pairs with the listener's look. */
        hf_u32_store(&remote->stop, 1, __ATOMIC_RELEASE);
        (void)!write(remote->wake_fd, &one, sizeof one);
        hf_thread_join(&remote->thread);
    }
    if (remote->wake_fd >= 0)
        (void)close(remote->wake_fd);
}
