/* client.c - the turns of clients. */
#include "sim/server/client.h"
#include "sim/server/disk.h"
#include "sim/server/record.h"
#include "sim/server/sale.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/server/visit.h"

#define AGAIN_MAX 16
#define BULK      300u
#define EPOCH     150u /* requests until other names are in use */

struct client {
    uint64_t number;
    uint64_t turn;
    struct dice dice; /* of when, not of what */
    struct visit *visit;
    struct knows knows;
    struct words again[AGAIN_MAX]; /* to be asked again */
    size_t again_count;
    uint64_t wake; /* the plan that counts; others are void */
    bool hard;     /* of hearing, and may talk all the same */
    bool talks;
    bool parting; /* asks for one lock, and leaves before the answer */
    bool leaving; /* cuts the connection when it has waited a little */
    bool reader;  /* only reads all that there is */
    bool read;    /* and has asked */
    bool masked;
};

static struct {
    const struct mix *mix;
    const struct client_masks *masks;
    struct client list[CLIENTS_MAX + 1];
    size_t count;
    uint64_t sent;
    uint64_t limit;
    uint64_t paused_until_ns;
    bool healed;
} clients;

static void plan(struct client *client, uint64_t ns);

/* ---- One turn. ---- */

static bool turn_is_masked(const struct client *client)
{
    const struct client_masks *masks = clients.masks;
    uint64_t turn = client->turn;

    return masks != NULL && turn < TURNS_MAX && !client->reader &&
           (masks->turns[client->number][turn / 8] >> (turn % 8) & 1) != 0;
}

static void keep_again(struct client *client, const struct words *words)
{
    if (words != NULL && client->again_count < AGAIN_MAX)
        client->again[client->again_count++] = *words;
}

/* Does it only hear of events? */
static bool is_hearer(const struct client *client)
{
    const struct mix *mix = clients.mix;

    return !client->reader && client->number + mix->hearers >= mix->clients;
}

static bool is_idle(const struct client *client)
{
    const struct visit *visit = client->visit;

    return visit != NULL && visit->connected && !visit->finished &&
           !client->leaving && !is_hearer(client) &&
           visit_open_calls(visit) == 0;
}

/* Another one asks the same soon, on a connection of its own. */
static void share(struct client *client, const struct words *words,
                  uint64_t from_ns, uint64_t to_ns)
{
    uint64_t count = clients.mix->clients;
    uint64_t at = dice_below(&client->dice, count);
    struct client *other = &clients.list[at];

    for (uint64_t i = 1; i < count && !is_idle(other); i++)
        other = &clients.list[(at + i) % count];
    if (other == client)
        return;
    keep_again(other, words);
    if (is_idle(other))
        plan(other, dice_scale(&client->dice, from_ns, to_ns));
}

static void ask(struct client *client, struct dice *dice,
                const struct words *words)
{
    const struct mix *mix = clients.mix;

    uint64_t before = clients.sent / EPOCH;
    bool line = dice_hit(dice, mix->inline_);
    clients.sent += visit_ask(client->visit, words, line);
    make_epoch += clients.sent / EPOCH - before;
    if (mix->twins > 0 && words_has(words, "REQ") &&
        dice_hit(&client->dice, mix->twins))
        share(client, words, 1 * US, 5 * MS);
}

static void ask_again(struct client *client, struct dice *dice)
{
    struct words words = client->again[0];

    client->again_count--;
    memmove(client->again, client->again + 1,
            client->again_count * sizeof words);
    ask(client, dice, &words);
}

static void send_garbage(struct client *client, struct dice *dice)
{
    static const char *const texts[] = {
        "*1\r\n$-7\r\n",
        "*2\r\n$4\r\nPING\r\n:5\r\n",
        "*99999999\r\n",
        "*1\r\n$99999999\r\n",
        "*1\r\n$4\r\nPINGxx",
        "\"open quote\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    };
    const char *text = texts[dice_below(dice, 7)];

    visit_send(client->visit, text, strlen(text));
}

/* Hundreds of requests in one breath. */
static void send_bulk(struct client *client, struct dice *dice)
{
    uint64_t style = dice_below(dice, 3);
    struct words words;

    for (uint64_t i = 0; i < BULK && clients.sent < clients.limit; i++) {
        make_bulk(clients.mix, style, &words);
        ask(client, dice, &words);
    }
}

/* Its part in a sale; false: there is none for it now. */
static bool send_sale(struct client *client, struct dice *dice)
{
    struct words words;
    uint64_t i = 0;

    while (sale_request(dice, client->number, i, &words)) {
        ask(client, dice, &words);
        i++;
    }
    return i > 0;
}

/* A LOCK that it does not wait for. Perhaps it sends more behind it, and
 * another client asks for the same lock as the same owner. */
static void send_parting(struct client *client, struct dice *dice)
{
    bool followed = dice_hit(dice, clients.mix->followed);
    struct words words;
    struct words behind;

    if (!followed ||
        !make_reentry(dice, &client->knows, client->number, &words, &behind))
        make_parting(clients.mix, dice, followed, &words, &behind);
    ask(client, dice, &words);
    if (followed) {
        bool stock = words_is(&words, 0, "RESERVE");
        share(client, stock ? &behind : &words, 50 * MS, 400 * MS);
        ask(client, dice, &behind);
    }
    if (dice_hit(dice, clients.mix->flood))
        visit_flood(client->visit);
}

static void send_turn(struct client *client, struct dice *dice)
{
    const struct mix *mix = clients.mix;
    uint64_t count =
        dice_hit(dice, mix->pipeline) ? dice_scale(dice, 2, 40) : 1;
    struct words words;

    client->parting = false;
    if (is_hearer(client)) {
        make_hearing(mix, dice, &client->visit->hearing, &words);
        ask(client, dice, &words);
        return;
    }
    if (send_sale(client, dice))
        return;
    if (dice_hit(dice, mix->bulk)) {
        send_bulk(client, dice);
        return;
    }
    client->parting = dice_hit(dice, mix->leave);
    if (client->parting) {
        send_parting(client, dice);
        return;
    }
    for (uint64_t i = 0; i < count && clients.sent < clients.limit; i++) {
        if (client->again_count > 0 && dice_hit(dice, 800)) {
            ask_again(client, dice);
            continue;
        }
        if (client->number == 0 && client->turn < mix->skus && i == 0)
            make_first(mix, client->turn, &words);
        else
            make_request(mix, dice, &client->knows, client->number,
                         client->turn * 100 + i, &words);
        ask(client, dice, &words);
    }
    if (dice_hit(dice, mix->garbage))
        send_garbage(client, dice);
}

/* How the turn goes on: waits for the answers, as a rule. */
static void end_turn(struct client *client, struct dice *dice)
{
    const struct mix *mix = clients.mix;

    if (client->parting) {
        client->leaving = true;
        if (dice_hit(dice, 200))
            visit_finish(client->visit); /* its reset is not read then */
        plan(client, dice_scale(dice, 1 * US, 20 * MS));
        return;
    }
    if (dice_hit(dice, mix->half)) {
        visit_finish(client->visit);
    } else if (dice_hit(dice, mix->leave)) {
        client->leaving = true;
        plan(client, dice_scale(dice, 1 * US, 100 * MS));
        return;
    }
    plan(client, dice_scale(dice, mix->patience_ns, 90 * S));
}

static void read_all(struct client *client, struct dice *dice)
{
    const struct mix *mix = clients.mix;
    struct words words;

    client->read = true;
    for (uint64_t i = 0; i < mix->names + mix->skus + mix->ids + 3; i++) {
        words.count = words.len = 0;
        if (i < mix->names) {
            words_add(&words, "LOCKINFO");
            words_add(&words, "%s", mix_name(mix, i));
        } else if (i < mix->names + mix->skus) {
            words_add(&words, "STOCK");
            words_add(&words, "GET");
            words_add(&words, "%s", mix_sku(mix, i - mix->names));
        } else if (i < mix->names + mix->skus + mix->ids) {
            words_add(&words, "RESERVATION");
            words_add(
                &words, "r%u",
                (unsigned)(make_epoch * mix->ids + i - mix->names - mix->skus));
        } else {
            static const char *const lists[] = {"STOCK", "SESSION", "LOCKS"};
            words_add(&words, "%s", lists[i % 3]);
            words_add(&words, "%s", i % 3 == 2 ? "*" : "LIST");
        }
        ask(client, dice, &words);
    }
    for (size_t i = 0; i < knows_all.id_count; i++) {
        words = (struct words){.count = 0};
        words_add(&words, "RESERVATION");
        words_add(&words, "%s", knows_all.ids[i].name);
        ask(client, dice, &words);
    }
}

static void take_turn(struct client *client)
{
    struct dice dice =
        dice_make(world_seed(), "turn", client->number, client->turn);

    if (client->reader) {
        if (!client->read)
            read_all(client, &dice);
        return;
    }
    if (clients.sent >= clients.limit)
        return;
    if (turn_is_masked(client)) {
        client->turn++;
        plan(client, clients.mix->think_ns);
        return;
    }
    send_turn(client, &dice);
    client->turn++;
    end_turn(client, &dice);
}

/* ---- Coming and going. ---- */

static void leave(struct client *client, bool reset)
{
    struct visit *visit = client->visit;
    struct words words;

    for (size_t i = visit->answered; i < visit->count; i++)
        keep_again(client, call_again(visit->calls[i]));
    if (make_keep(&client->knows, &words) && dice_hit(&client->dice, 500))
        keep_again(client, &words); /* from the next connection */
    client->visit = NULL;
    client->leaving = client->hard = false;
    visit_close(visit, reset);
}

static void on_ended(struct visit *visit)
{
    struct client *client = visit->client;

    if (client->visit != visit)
        return;
    leave(client, false);
    client->read = false;
    plan(client, dice_scale(&client->dice, 1 * MS, 1 * S));
}

static void on_connected(struct visit *visit)
{
    if (visit->client->visit == visit)
        plan(visit->client, 1);
}

static void on_answered(struct visit *visit, struct call *call,
                        struct hf_bytes reply)
{
    struct client *client = visit->client;
    const struct mix *mix = clients.mix;

    if (call->id == 0)
        return;
    knows_learn(&client->knows,
                call->group != NULL ? call->group : &call->words, reply);
    sale_learn(&call->words, reply);
    bool late = reply.len > 8 && memcmp(reply.data, "-TIMEOUT", 8) == 0;
    if (!clients.healed && call_again(call) != NULL &&
        dice_hit(&client->dice, late ? 4 * mix->again : mix->again))
        keep_again(client, call_again(call));
    if (client->visit == visit && visit_open_calls(visit) == 0 &&
        !client->leaving)
        plan(client,
             dice_scale(&client->dice, mix->pace_ns,
                        mix->pace_ns > US ? 4 * mix->pace_ns : mix->think_ns));
}

/* It reads next to nothing for a minute or two, and small pieces only fit on
 * its way; or a little every second. */
static void hear_little(struct client *client)
{
    struct visit *visit = client->visit;

    visit->wire->window = 600;
    if (dice_hit(&client->dice, 300))
        visit->sip_ns = dice_between(&client->dice, 500 * MS, 1200 * MS);
    else
        visit->deaf_ns =
            world_now_ns() + dice_between(&client->dice, 10 * S, 130 * S);
    client->talks = dice_hit(&client->dice, 500);
    client->hard = true;
}

/* One that hears little is patient; it asks for more than it can take. */
static bool go_on_deaf(struct client *client)
{
    struct visit *visit = client->visit;
    struct words words = {0};
    bool first = visit->count == 0;

    if (!client->hard || !visit->connected || clients.healed ||
        clients.sent >= clients.limit ||
        (visit->count > 0 && visit_open_calls(visit) == 0))
        return false;
    if (first || client->talks) {
        words_add(&words, first ? "METRICS" : "PING");
        ask(client, &client->dice, &words);
    }
    plan(client, dice_between(&client->dice, 1 * S, 20 * S));
    return true;
}

static void connect(struct client *client)
{
    const struct mix *mix = clients.mix;
    bool local = client->reader || !dice_hit(&client->dice, mix->foreign);
    bool slow = !client->reader && dice_hit(&client->dice, mix->slow);

    client->visit = visit_open(client, local, slow);
    if (slow && dice_hit(&client->dice, mix->deaf))
        hear_little(client);
    plan(client, dice_scale(&client->dice, mix->patience_ns, 90 * S));
}

static void on_wake(void *context, uint64_t wake)
{
    struct client *client = context;
    struct visit *visit = client->visit;

    if (wake != client->wake || client->masked)
        return;
    if (world_now_ns() < clients.paused_until_ns && !clients.healed) {
        plan(client, clients.paused_until_ns - world_now_ns());
        return;
    }
    if (visit == NULL) {
        bool more = clients.sent < clients.limit || client->again_count > 0;
        if (client->reader || (more && !clients.healed))
            connect(client);
        return;
    }
    if (!client->leaving && go_on_deaf(client))
        return;
    bool waits = !visit->connected || visit_open_calls(visit) > 0;
    if (visit->finished && !waits) {
        leave(client, false);
        plan(client, 1);
        return;
    }
    if (waits && clients.healed)
        return; /* patient from now on */
    if (waits || client->leaving) {
        leave(client, client->leaving || dice_hit(&client->dice, 500));
        plan(client, dice_scale(&client->dice, 1 * MS, 1 * S));
        return;
    }
    take_turn(client);
}

static void plan(struct client *client, uint64_t ns)
{
    world_after(ns, on_wake, client, ++client->wake);
}

/* ---- All of them. ---- */

static void add_client(uint64_t number, bool reader)
{
    struct client *client = &clients.list[clients.count++];

    memset(client, 0, sizeof *client);
    client->number = number;
    client->dice = dice_make(world_seed(), "client", number, 0);
    client->reader = reader;
    client->masked =
        !reader && clients.masks != NULL && clients.masks->clients[number];
    plan(client, dice_scale(&client->dice, 1 * US, 50 * MS));
}

void clients_begin(const struct mix *mix, const struct client_masks *masks,
                   uint64_t limit)
{
    static const struct visit_calls calls = {
        .answered = on_answered,
        .connected = on_connected,
        .ended = on_ended,
    };

    assert(mix->clients <= CLIENTS_MAX);
    memset(&clients, 0, sizeof clients);
    memset(&knows_all, 0, sizeof knows_all);
    make_epoch = 0;
    clients.mix = mix;
    clients.masks = masks;
    clients.limit = limit;
    sale_begin();
    hearing_begin(mix);
    visits_begin(&calls);
    visits_bounds(mix->idle_ms * MS, mix->clients_max < 1000);
    for (uint64_t i = 0; i < mix->clients; i++)
        add_client(i, false);
}

void clients_end(void)
{
    visits_end();
}

uint64_t clients_sent(void)
{
    return clients.sent;
}

bool clients_done(void)
{
    bool some = false;

    for (size_t i = 0; i < clients.count; i++)
        some = some ||
               (!clients.list[i].masked && clients.list[i].turn < TURNS_MAX);
    return clients.sent >= clients.limit || !some;
}

bool clients_quiet(void)
{
    for (size_t i = 0; i < clients.count; i++) {
        struct client *client = &clients.list[i];
        if (client->masked)
            continue;
        if (client->reader && !client->read)
            return false;
        if (client->visit != NULL && visit_open_calls(client->visit) > 0)
            return false;
    }
    return true;
}

void clients_heal(void)
{
    clients.healed = true;
    visits_heal();
    for (size_t i = 0; i < clients.count; i++) {
        struct client *client = &clients.list[i];
        if (client->visit != NULL && visit_is_stuck(client->visit))
            leave(client, true);
    }
}

void clients_pause(uint64_t ns)
{
    clients.paused_until_ns = world_now_ns() + ns;
}

void clients_stall(uint64_t ns)
{
    if (clients.healed)
        return;
    disk_stall(ns);
    record_say("the next batch takes %llu ms", (unsigned long long)(ns / MS));
}

bool clients_ask_one(const struct words *words)
{
    for (size_t i = 0; i < clients.count && !clients.healed; i++) {
        struct client *client = &clients.list[i];
        if (client->masked || !is_idle(client))
            continue;
        ask(client, &client->dice, words);
        return true;
    }
    return false;
}

void clients_read_all(void)
{
    struct client *client = &clients.list[clients.count - 1];

    for (size_t i = 0; i < clients.count; i++) { /* there is room for it */
        if (!clients.list[i].reader && clients.list[i].visit != NULL)
            leave(&clients.list[i], false);
    }
    if (!client->reader)
        add_client(clients.mix->clients, true);
    else
        client->read = false;
    plan(&clients.list[clients.count - 1], 1);
}

void clients_stopped(uint64_t asked_ns)
{
    visits_stopped(asked_ns);
}

void clients_failed(uint64_t failed_ns)
{
    visits_failed(failed_ns);
}

uint64_t clients_next_id(void)
{
    return visits_next_id();
}

void clients_excuse(bool on, bool stops)
{
    visits_excuse(on, stops);
}

const char *clients_wrong(void)
{
    return visits_wrong();
}

uint64_t clients_turns(uint64_t client)
{
    return clients.list[client].turn;
}
