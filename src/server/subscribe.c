/* subscribe.c - who has subscribed to what, and is told. */
#include "server/subscribe.h"

#include "base/memory.h"
#include "feed/event.h"
#include "resp/json.h"
#include "server/admin.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/events.h"
#include "server/server.h"

/* A pattern that takes more steps for one name is not served; nor is one that
 * takes more than a few when so many were taken in one turn. */
#define MATCH_STEPS_MAX 10000u
#define MATCH_STEPS_FEW 64u
#define TURN_STEPS      2000000u

/* What a message to one subscriber counts as, and one more for so many bytes;
 * no pattern is cut for the latter. */
#define DELIVER_STEPS 16u
#define DELIVER_BYTES 64u

/* Steps of PUBSUB CHANNELS. */
#define LIST_STEPS_MAX 200000u
#define LIST_BYTES     16u

/* A channel, or a pattern, that somebody has subscribed to. */
struct topic {
    struct hf_named named;
    uint32_t count;
    struct subscription *first;
};

struct subscription {
    struct conn *conn;
    struct hf_index *index; /* of its topic */
    uint32_t topic;
    struct subscription *prev; /* of the same topic */
    struct subscription *next;
    struct subscription *prev_own; /* of the same connection */
    struct subscription *next_own;
};

enum hf_status subscriptions_open(struct subscriptions *s)
{
    struct hf_hash_seed seed;

    if (server_random(&seed, sizeof seed) != HF_OK)
        return HF_IO;
    hf_texts_init(&s->texts, &s->bytes);
    enum hf_status status = hf_index_init(&s->channels, sizeof(struct topic),
                                          &s->texts, seed, &s->bytes);
    return status != HF_OK ? status
                           : hf_index_init(&s->patterns, sizeof(struct topic),
                                           &s->texts, seed, &s->bytes);
}

void subscriptions_close(struct subscriptions *s)
{
    hf_index_destroy(&s->channels);
    hf_index_destroy(&s->patterns);
    hf_texts_destroy(&s->texts);
    hf_buf_destroy(&s->payload);
}

/* ---- Coming and going. ---- */

/* In the shorter one of both lists. */
static struct subscription *
find_own(struct conn *conn, const struct hf_index *index, uint32_t number)
{
    const struct topic *topic = hf_index_at(index, number);
    bool by_topic = topic->count < conn->subscription_count;
    struct subscription *s = by_topic ? topic->first : conn->subscriptions;
    uint64_t steps = 1;

    for (; s != NULL &&
           (s->conn != conn || s->index != index || s->topic != number);
         steps++)
        s = by_topic ? s->next : s->next_own;
    conn_spend(conn, steps);
    return s;
}

/* Takes it off both lists, and frees it; the last takes the topic with it. */
static void end(struct server *server, struct subscription *subscription)
{
    struct topic *topic = hf_index_at(subscription->index, subscription->topic);

    *(subscription->prev_own != NULL ? &subscription->prev_own->next_own
                                     : &subscription->conn->subscriptions) =
        subscription->next_own;
    if (subscription->next_own != NULL)
        subscription->next_own->prev_own = subscription->prev_own;
    subscription->conn->subscription_count--;
    server->subscriptions.count--;
    *(subscription->prev != NULL ? &subscription->prev->next : &topic->first) =
        subscription->next;
    if (subscription->next != NULL)
        subscription->next->prev = subscription->prev;
    if (--topic->count == 0)
        hf_index_remove(subscription->index, subscription->topic);
    hf_free(subscription);
}

void subscribe_leave(struct server *server, struct conn *conn)
{
    while (conn->subscriptions != NULL)
        end(server, conn->subscriptions);
}

/* HF_FULL: too many; HF_NOMEM. */
static enum hf_status begin(struct server *server, struct conn *conn,
                            struct hf_index *index, struct hf_bytes name)
{
    struct subscriptions *all = &server->subscriptions;
    uint32_t number = hf_index_find(index, name);

    if (number != 0 && find_own(conn, index, number) != NULL)
        return HF_OK;
    if (conn->subscription_count >= SUBSCRIPTIONS_MAX ||
        (number == 0 && index == &all->patterns &&
         hf_index_count(index) >= PATTERNS_MAX))
        return HF_FULL;
    if (hold_tell(server->engine) != HF_OK)
        return HF_NOMEM; /* from the first subscription on */
    struct subscription *made = hf_alloc_zeroed(sizeof *made);
    if (made != NULL && number == 0)
        number = hf_index_add(index, name);
    if (made == NULL || number == 0) {
        hf_free(made);
        return HF_NOMEM;
    }
    struct topic *topic = hf_index_at(index, number);
    *made = (struct subscription){.conn = conn,
                                  .index = index,
                                  .topic = number,
                                  .next = topic->first,
                                  .next_own = conn->subscriptions};
    if (topic->first != NULL)
        topic->first->prev = made;
    topic->first = made;
    topic->count++;
    if (conn->subscriptions != NULL)
        conn->subscriptions->prev_own = made;
    conn->subscriptions = made;
    conn->subscription_count++;
    all->count++;
    return HF_OK;
}

/* ---- Commands. ---- */

/* Begins what is no reply to one request: a push, where there are pushes. */
static void put_push(struct reply *reply, size_t count)
{
    if (reply->codec->push != NULL)
        reply->codec->push(reply, count);
    else
        reply_put_list(reply, count);
}

static void confirm(const struct conn *conn, struct reply *reply,
                    const char *what, const struct hf_bytes *name)
{
    put_push(reply, 3);
    reply_put_text(reply, what);
    if (name != NULL)
        reply_put_bytes(reply, *name);
    else
        reply_put_null(reply);
    reply_put_number(reply, conn->subscription_count);
}

/* For each name it is looked through what the client has. */
static void spend(const struct asked *asked)
{
    conn_spend(asked->conn,
               (uint64_t)asked->count * asked->conn->subscription_count);
}

static void subscribe(const struct asked *asked, struct hf_index *index,
                      const char *what)
{
    struct server *server = asked->server;

    spend(asked);
    for (size_t i = 0; i < asked->count; i++) {
        struct hf_bytes name = asked->args[i];
        enum hf_status status = HF_INVALID;
        if (name.len > 0 && name.len <= CHANNEL_MAX)
            status = begin(server, asked->conn, index, name);
        if (status == HF_OK)
            confirm(asked->conn, asked->reply, what, &name);
        else if (status == HF_INVALID)
            answer_error(server, asked->conn, ERROR_CHANNEL, CHANNEL_MAX);
        else if (status == HF_FULL)
            answer_error(server, asked->conn, ERROR_SUBSCRIPTIONS,
                         SUBSCRIPTIONS_MAX, PATTERNS_MAX);
        else
            answer_refused(server, asked->conn, status);
    }
}

void subscribe_channels(const struct asked *asked)
{
    subscribe(asked, &asked->server->subscriptions.channels, "subscribe");
}

void subscribe_patterns(const struct asked *asked)
{
    subscribe(asked, &asked->server->subscriptions.patterns, "psubscribe");
}

/* Without names: all of them. */
static void unsubscribe_all(const struct asked *asked,
                            const struct hf_index *index, const char *what)
{
    struct conn *conn = asked->conn;
    struct subscription *next;
    bool any = false;

    for (struct subscription *own = conn->subscriptions; own != NULL;
         own = next) {
        next = own->next_own;
        if (own->index != index)
            continue;
        char copy[CHANNEL_MAX];
        struct hf_bytes name =
            hf_index_name(index, hf_index_at(index, own->topic));
        memcpy(copy, name.data, name.len);
        name.data = copy;
        end(asked->server, own);
        confirm(conn, asked->reply, what, &name);
        any = true;
    }
    if (!any)
        confirm(conn, asked->reply, what, NULL);
}

static void unsubscribe(const struct asked *asked, struct hf_index *index,
                        const char *what)
{
    spend(asked);
    if (asked->count == 0)
        unsubscribe_all(asked, index, what);
    for (size_t i = 0; i < asked->count; i++) {
        uint32_t topic = hf_index_find(index, asked->args[i]);
        struct subscription *own =
            topic == 0 ? NULL : find_own(asked->conn, index, topic);
        if (own != NULL)
            end(asked->server, own);
        confirm(asked->conn, asked->reply, what, &asked->args[i]);
    }
}

void unsubscribe_channels(const struct asked *asked)
{
    unsubscribe(asked, &asked->server->subscriptions.channels, "unsubscribe");
}

void unsubscribe_patterns(const struct asked *asked)
{
    unsubscribe(asked, &asked->server->subscriptions.patterns, "punsubscribe");
}

bool subscribe_has(const struct conn *conn)
{
    return conn->subscriptions != NULL && conn->reply.codec->push == NULL;
}

bool subscribe_refuses(struct server *server, struct conn *conn,
                       const struct command *command)
{
    command_fn *run = command == NULL ? NULL : command->run;

    if (!subscribe_has(conn) || run == subscribe_channels ||
        run == subscribe_patterns || run == unsubscribe_channels ||
        run == unsubscribe_patterns || run == admin_ping || run == admin_quit)
        return false;
    answer_error(server, conn, ERROR_SUBSCRIBED);
    return true;
}

/* ---- Telling. ---- */

/* Where there are pushes it is one: an error would be the answer to something
 * that the client has asked. */
static void say_why(struct server *server, struct conn *conn,
                    enum hold_code code, const char *why)
{
    if (conn->reply.codec->push == NULL) {
        answer_error(server, conn, code, "%s", why);
        return;
    }
    put_push(&conn->reply, 3);
    reply_put_text(&conn->reply, "cut");
    reply_put_text(&conn->reply, hold_code_name(code));
    reply_put_text(&conn->reply, why);
    answer_done(conn);
}

/* It is told why, and closed when it has read that. */
static void cut(struct server *server, struct conn *conn, bool slow)
{
    server->subscriptions.cut++;
    report_misbehaved(&server->report, conn,
                      slow ? "subscriber reads too slowly"
                           : "pattern takes too long to compare",
                      NULL);
    if (slow)
        say_why(server, conn, ERROR_SLOW_SUBSCRIBER);
    else
        say_why(server, conn, ERROR_SLOW_PATTERN);
    conn->quitting = true;
    conn_touch(conn);
}

static void count_steps(struct subscriptions *all, uint64_t steps)
{
    all->steps += steps;
    all->turn_steps += steps;
}

/* The steps of this turn so far, and those of bytes: to be compared in one
 * turn. */
static uint64_t steps_so_far(struct server *server)
{
    struct subscriptions *all = &server->subscriptions;

    if (all->turn != server->turn)
        all->turn_steps = 0;
    all->turn = server->turn;
    return all->turn_steps + all->copied;
}

static uint64_t deliver(struct server *server, const struct hf_index *index,
                        const struct topic *topic, struct hf_bytes channel,
                        struct hf_bytes text)
{
    bool pattern = index == &server->subscriptions.patterns;
    uint64_t count = 0;

    for (const struct subscription *s = topic->first; s != NULL; s = s->next) {
        struct conn *conn = s->conn;
        if (conn->closing || conn->quitting)
            continue;
        if (conn_is_full(conn)) {
            cut(server, conn, true);
            continue;
        }
        put_push(&conn->reply, pattern ? 4 : 3);
        reply_put_text(&conn->reply, pattern ? "pmessage" : "message");
        if (pattern)
            reply_put_bytes(&conn->reply, hf_index_name(index, topic));
        reply_put_bytes(&conn->reply, channel);
        reply_put_bytes(&conn->reply, text);
        answer_done(conn);
        count++;
    }
    server->subscriptions.delivered += count;
    server->subscriptions.copied += count * (text.len / DELIVER_BYTES);
    count_steps(&server->subscriptions, count * DELIVER_STEPS);
    return count;
}

static void cut_all(struct server *server, const struct topic *topic)
{
    for (const struct subscription *s = topic->first; s != NULL; s = s->next) {
        if (!s->conn->closing && !s->conn->quitting)
            cut(server, s->conn, false);
    }
}

/* Has it a subscriber that was not cut? */
static bool is_heard(const struct topic *topic)
{
    const struct subscription *s = topic->first;

    while (s != NULL && (s->conn->closing || s->conn->quitting))
        s = s->next;
    return s != NULL;
}

static bool matches(struct server *server, const struct topic *topic,
                    struct hf_bytes channel)
{
    struct subscriptions *all = &server->subscriptions;
    uint64_t most =
        all->turn_steps < TURN_STEPS ? MATCH_STEPS_MAX : MATCH_STEPS_FEW;
    uint64_t steps = 0;
    bool match = hf_bytes_match_within(hf_index_name(&all->patterns, topic),
                                       channel, most, &steps);

    count_steps(all, 1 + steps);
    if (steps > most)
        cut_all(server, topic);
    return match && steps <= most;
}

/* A delivery that finds no memory closes its connection, whose subscriptions
 * stay until the loop comes to them: see subscribe_leave(). */
static uint64_t publish(struct server *server, struct hf_bytes channel,
                        struct hf_bytes text)
{
    struct subscriptions *all = &server->subscriptions;
    uint32_t number = hf_index_find(&all->channels, channel);
    uint64_t count = 0;

    all->published++;
    all->steps = 0;
    if (number != 0)
        count = deliver(server, &all->channels,
                        hf_index_at(&all->channels, number), channel, text);
    for (uint32_t i = 1;
         hf_index_count(&all->patterns) > 0 && i < hf_index_top(&all->patterns);
         i++) {
        const struct topic *topic = hf_index_used(&all->patterns, i);
        if (topic != NULL && is_heard(topic) && matches(server, topic, channel))
            count += deliver(server, &all->patterns, topic, channel, text);
    }
    if (all->steps > all->steps_max)
        all->steps_max = all->steps;
    return count;
}

void publish_text(const struct asked *asked)
{
    struct server *server = asked->server;
    struct hf_bytes channel = asked->args[0];
    size_t len = strlen(EVENT_CHANNEL_PREFIX);
    uint64_t before = steps_so_far(asked->server);

    if (channel.len == 0 || channel.len > CHANNEL_MAX)
        answer_error(server, asked->conn, ERROR_CHANNEL, CHANNEL_MAX);
    else if (channel.len >= len &&
             memcmp(channel.data, EVENT_CHANNEL_PREFIX, len) == 0)
        answer_error(server, asked->conn, ERROR_PUBLISH);
    else
        reply_put_number(asked->reply,
                         (int64_t)publish(server, channel, asked->args[1]));
    conn_spend(asked->conn, steps_so_far(server) - before);
}

static void tell(struct server *server, const struct hold_event *event,
                 uint64_t now_us)
{
    struct subscriptions *all = &server->subscriptions;
    struct event_channels channels = {.event = event};
    char name[EVENT_CHANNEL_MAX];
    struct json_reply json;
    struct hf_bytes channel;

    all->payload.len = 0;
    json_reply_init(&json, &all->payload);
    event_put(&json.reply, event, now_us);
    if (json.reply.failed)
        return; /* without memory; pub/sub promises nothing */
    while ((channel = event_channel(&channels, name)).len > 0)
        (void)publish(server, channel, hf_buf_bytes(&all->payload));
}

void subscribe_events(struct server *server, const struct hold_out *out)
{
    if (server->subscriptions.count == 0)
        return;
    uint64_t before = steps_so_far(server);
    for (size_t i = 0; i < out->event_count; i++)
        tell(server, &out->events[i], out->now_us);
    server->turn_applied += steps_so_far(server) - before;
}

void subscribe_wanted(struct server *server, struct hf_bytes name,
                      uint64_t ticket)
{
    struct subscriptions *all = &server->subscriptions;
    const struct hold_event of = {.kind = EVENT_LOCK_GRANTED, .name = name};
    struct event_channels channels = {.event = &of};
    char channel[EVENT_CHANNEL_MAX];
    struct json_reply json;

    if (all->count == 0)
        return;
    uint64_t before = steps_so_far(server);
    all->payload.len = 0;
    json_reply_init(&json, &all->payload);
    reply_put_map(&json.reply, 3);
    reply_pair_number(&json.reply, "seq", (int64_t)ticket);
    reply_pair_text(&json.reply, "kind", "lock_wanted");
    reply_put_key(&json.reply, "name");
    reply_put_bytes(&json.reply, name);
    if (!json.reply.failed)
        (void)publish(server, event_channel(&channels, channel),
                      hf_buf_bytes(&all->payload));
    server->turn_applied += steps_so_far(server) - before;
}

/* ---- PUBSUB. ---- */

void pubsub_channels(const struct asked *asked)
{
    const struct hf_index *channels = &asked->server->subscriptions.channels;
    struct hf_bytes pattern =
        asked->count > 0 ? asked->args[0] : hf_bytes("*", 1);
    size_t count = 0;
    uint64_t steps = 0;

    for (int put = 0; put < 2; put++) {
        if (put)
            reply_put_list(asked->reply, count);
        for (uint32_t i = 1; i < hf_index_top(channels); i++) {
            const struct topic *topic = hf_index_used(channels, i);
            struct hf_bytes name = {NULL, 0};
            if (topic != NULL)
                name = hf_index_name(channels, topic);
            steps += 1 + name.len / LIST_BYTES;
            if (topic == NULL ||
                !hf_bytes_match_within(pattern, name, LIST_STEPS_MAX, &steps))
                continue;
            if (put)
                reply_put_bytes(asked->reply, name);
            else
                count++;
        }
        if (!put && steps > LIST_STEPS_MAX) {
            answer_error(asked->server, asked->conn, ERROR_MANY_CHANNELS);
            return;
        }
        steps = 0;
    }
}

void pubsub_numsub(const struct asked *asked)
{
    const struct hf_index *channels = &asked->server->subscriptions.channels;

    reply_put_list(asked->reply, 2 * asked->count);
    for (size_t i = 0; i < asked->count; i++) {
        uint32_t number = hf_index_find(channels, asked->args[i]);
        const struct topic *topic =
            number == 0 ? NULL : hf_index_at(channels, number);
        reply_put_bytes(asked->reply, asked->args[i]);
        reply_put_number(asked->reply, topic == NULL ? 0 : topic->count);
    }
}

void pubsub_numpat(const struct asked *asked)
{
    reply_put_number(asked->reply,
                     hf_index_count(&asked->server->subscriptions.patterns));
}
