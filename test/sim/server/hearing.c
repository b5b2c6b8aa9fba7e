/* hearing.c - what subscribers are told, beside what the engine told. */
#include "sim/server/hearing.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "feed/event.h"
#include "resp/resp.h"
#include "sim/server/feeding.h"
#include "sim/server/making.h"

static struct {
    bool on; /* else there is nothing to compare with */
    bool loose;
    char wrong[400];
} all;

void hearing_begin(const struct mix *mix)
{
    memset(&all, 0, sizeof all);
    all.on = mix->events_bytes > 0;
    for (size_t i = 0; i < mix->fault_count; i++)
        all.loose |= mix->faults[i].kind == FAULT_MEMORY;
}

const char *hearing_wrong(void)
{
    return all.wrong[0] == '\0' ? NULL : all.wrong;
}

static void wrong(const char *format, ...)
{
    va_list args;

    if (all.wrong[0] != '\0')
        return;
    va_start(args, format);
    vsnprintf(all.wrong, sizeof all.wrong, format, args);
    va_end(args);
}

/* ---- Requests. ---- */

/* RESP3 first, as a rule: in RESP2 only a PING comes between messages. */
void make_hearing(const struct mix *mix, struct dice *dice,
                  const struct hearing *hearing, struct words *out)
{
    static const char *const patterns[] = {"hf:*", "*", "hf:lock:*",
                                           "hf:stock:*", "hf:election:a*"};

    out->count = out->len = 0;
    if (hearing->on && dice_hit(dice, 900)) {
        words_add(out, "PING");
        return;
    }
    if (hearing->on) {
        words_add(out, hearing->pattern ? "PUNSUBSCRIBE" : "UNSUBSCRIBE");
        words_add(out, "%s", hearing->topic);
        return;
    }
    if (dice_hit(dice, 400)) {
        words_add(out, "HELLO");
        words_add(out, dice_hit(dice, 800) ? "3" : "2");
    } else if (dice_hit(dice, 700)) {
        words_add(out, "PSUBSCRIBE");
        words_add(out, "%s", patterns[dice_below(dice, 5)]);
    } else {
        bool stock = dice_hit(dice, 500);
        words_add(out, "SUBSCRIBE");
        words_add(out, "hf:%s:%s", stock ? "stock" : "lock",
                  stock ? mix_sku(mix, 0) : mix_name(mix, 0));
    }
}

/* ---- What is told. ---- */

static struct hf_bytes element(struct hf_bytes list, size_t number)
{
    struct resp_value value = {.number = 0};
    size_t at = 0;

    for (size_t i = 0; i <= number + 1; i++) {
        if (resp_read(list, &at, &value) != HF_OK)
            return hf_bytes("", 0);
    }
    return value.text;
}

static bool is_message(struct hf_bytes reply)
{
    struct hf_bytes kind = element(reply, 0);

    return hf_bytes_equal(kind, hf_bytes_text("message")) ||
           hf_bytes_equal(kind, hf_bytes_text("pmessage"));
}

bool hearing_is_push(struct hf_bytes reply)
{
    if (reply.data[0] == '*') /* of RESP2: three of them, or four */
        return (reply.data[1] | 7) == '7' && is_message(reply);
    if (reply.data[0] != '>')
        return false;
    struct hf_bytes kind = element(reply, 0);
    const char *end = "subscribe";
    size_t len = strlen(end);
    return kind.len < len || memcmp(kind.data + kind.len - len, end, len) != 0;
}

/* The next message that the subscriber is owed: the number of its event, and
 * which channel; UINT64_MAX: none. */
static uint64_t find_next(struct hearing *hearing, struct hf_bytes *channel,
                          char name[EVENT_CHANNEL_MAX],
                          struct hold_event *event)
{
    struct hf_bytes topic = hf_bytes_text(hearing->topic);

    while (feeding_find(hearing->seq, event)) {
        struct event_channels channels = {.event = event};
        if (event->seq > hearing->seq)
            hearing->next = 0;
        hearing->seq = event->seq;
        while ((*channel = event_channel(&channels, name)).len > 0) {
            if (channels.next > hearing->next &&
                (hearing->pattern ? hf_bytes_match(topic, *channel)
                                  : hf_bytes_equal(topic, *channel))) {
                hearing->next = channels.next;
                return event->seq;
            }
        }
        hearing->next = 0;
        hearing->seq++;
    }
    return UINT64_MAX;
}

/* {"seq":N,"kind":"K",... */
static bool is_told(struct hf_bytes text, const struct hold_event *event)
{
    char head[100];
    int len = snprintf(head, sizeof head, "{\"seq\":%llu,\"kind\":\"%s\",",
                       ULL(event->seq), hold_event_name(event->kind));

    return text.len > (size_t)len && memcmp(text.data, head, (size_t)len) == 0;
}

void hearing_push(struct hearing *hearing, struct hf_bytes push)
{
    static const char wanted[] = ",\"kind\":\"lock_wanted\",";
    char name[EVENT_CHANNEL_MAX];
    struct hold_event event;
    struct hf_bytes channel;

    if (hf_bytes_equal(element(push, 0), hf_bytes_text("cut")))
        hearing->cut = true;
    if (!is_message(push) || !all.on || all.wrong[0] != '\0')
        return;
    struct hf_bytes about = element(push, hearing->pattern ? 2 : 1);
    struct hf_bytes text = element(push, hearing->pattern ? 3 : 2);
    if (about.len < 3 || memcmp(about.data, "hf:", 3) != 0 ||
        memmem(text.data, text.len, wanted, sizeof wanted - 1) != NULL)
        return;
    while (hearing->on) {
        uint64_t seq = find_next(hearing, &channel, name, &event);
        if (seq != UINT64_MAX && hf_bytes_equal(channel, about) &&
            is_told(text, &event)) {
            hearing->begun = true;
            return;
        }
        if (seq != UINT64_MAX &&
            (all.loose || (!hearing->begun && seq <= hearing->sure)))
            continue; /* it may have missed that */
        wrong("a subscriber of %s is told %.*s: %.*s, and the next is %llu",
              hearing->topic, HF_SHOW(about), HF_SHOW(text), ULL(seq));
        return;
    }
    wrong("%.*s is told to one who has no subscription", HF_SHOW(about));
}

/* Has it been told everything up to that number? */
static void judge_told(struct hearing *hearing, uint64_t up_to)
{
    struct hearing copy = *hearing;
    char name[EVENT_CHANNEL_MAX];
    struct hold_event event;
    struct hf_bytes channel;
    uint64_t seq;

    do
        seq = find_next(&copy, &channel, name, &event);
    while (!copy.begun && seq <= copy.sure);
    if (seq <= up_to && !all.loose && !hearing->cut)
        wrong("a subscriber of %s is not told %llu, %s", hearing->topic,
              ULL(seq), hold_event_name(event.kind));
}

void hearing_answer(struct hearing *hearing, const struct words *words,
                    struct hf_bytes reply, uint64_t read)
{
    bool pattern = words_is(words, 0, "PSUBSCRIBE");

    if (reply.data[0] == '-') { /* in RESP2 this is how it is told why */
        hearing->cut = hearing->on;
        return;
    }
    if (hearing->on && all.on)
        judge_told(hearing, read);
    if (words_is(words, 0, "PUNSUBSCRIBE") || words_is(words, 0, "UNSUBSCRIBE"))
        hearing->on = false;
    if (!pattern && !words_is(words, 0, "SUBSCRIBE"))
        return;
    *hearing = (struct hearing){.pattern = pattern,
                                .on = true,
                                .sure = feeding_up_to(),
                                .seq = read + 1};
    memcpy(hearing->topic, words->text + words->at[1], words->lens[1]);
}
