/* audit.c - STOCK SET and STOCK GET in batches over one connection. */
#include "cli/audit.h"

#include "resp/resp.h"

#define BATCH       500
#define DEADLINE_NS 60000000000ull /* for one batch */
#define CLIENT      UINT32_MAX     /* its number in a history */

static void name_of(char name[32], uint64_t key)
{
    snprintf(name, 32, "bench:%08llu", (unsigned long long)key);
}

static enum hf_status send_set(struct client *client, uint64_t key,
                               uint64_t total, struct record *record)
{
    char name[32];
    char digits[HF_DIGITS_MAX];
    size_t len = hf_print_u64(digits, total);

    name_of(name, key);
    struct hf_bytes args[] = {hf_bytes_text("STOCK"), hf_bytes_text("SET"),
                              hf_bytes_text(name), hf_bytes(digits, len)};
    (void)record_call(record, CLIENT, args, 4);
    return client_send(client, 4, args);
}

static enum hf_status send_get(struct client *client, uint64_t key,
                               struct record *record)
{
    char name[32];

    name_of(name, key);
    struct hf_bytes args[] = {hf_bytes_text("STOCK"), hf_bytes_text("GET"),
                              hf_bytes_text(name)};
    (void)record_call(record, CLIENT, args, 3);
    return client_send(client, 3, args);
}

/* The number behind the text `name`, wherever in the reply it is; -1: none. */
static int64_t find_number(struct hf_bytes reply, const char *name)
{
    struct resp_value value;
    bool next = false;
    size_t at = 0;

    while (resp_read(reply, &at, &value) == HF_OK) {
        if (next && value.kind == RESP_NUMBER)
            return value.number;
        next = (value.kind == RESP_BULK || value.kind == RESP_SIMPLE) &&
               hf_bytes_equal(value.text, hf_bytes_text(name));
    }
    return -1;
}

static void judge(struct audit *audit, struct hf_bytes reply)
{
    int64_t total = find_number(reply, "total");
    int64_t available = find_number(reply, "available");
    int64_t reserved = find_number(reply, "reserved");
    int64_t sold = find_number(reply, "sold");

    audit->products++;
    if (total < 0 || available < 0 || reserved < 0 || sold < 0 ||
        total != available + reserved + sold) {
        audit->broken++;
        return;
    }
    audit->reserved += (uint64_t)(reserved + sold);
}

static enum hf_status open_client(const struct client_address *address,
                                  struct client *client)
{
    struct client_target target;

    return client_open(client, address,
                       client_now_ns() + CLIENT_CONNECT_MS * 1000000ull,
                       &target);
}

/* Receives the replies to the last `count` calls; `audit` judges them, or
 * NULL: none may be an error. */
static enum hf_status receive_batch(struct client *client, uint64_t count,
                                    struct audit *audit, struct record *record)
{
    uint64_t id = record->next_id - count;
    uint64_t deadline_ns = client_now_ns() + DEADLINE_NS;
    enum hf_status status = client_step(client);

    for (uint64_t i = 0; status == HF_OK && i < count; i++) {
        struct hf_bytes reply;
        status = client_receive(client, deadline_ns, &reply);
        if (status == HF_OK)
            record_answer(record, CLIENT, id + i, reply);
        if (status == HF_OK && audit != NULL)
            judge(audit, reply);
        else if (status == HF_OK && reply.data[0] == '-')
            status = HF_INVALID;
    }
    return status;
}

enum hf_status audit_prepare(const struct client_address *address,
                             uint64_t keys, uint64_t total,
                             struct record *record)
{
    struct client client;
    enum hf_status status = open_client(address, &client);

    for (uint64_t key = 0; status == HF_OK && key < keys;) {
        uint64_t count = 0;
        for (; status == HF_OK && count < BATCH && key < keys; count++)
            status = send_set(&client, key++, total, record);
        if (status == HF_OK)
            status = receive_batch(&client, count, NULL, record);
    }
    client_close(&client);
    return status;
}

enum hf_status audit_read(const struct client_address *address, uint64_t keys,
                          struct audit *out, struct record *record)
{
    struct client client;
    enum hf_status status = open_client(address, &client);
    uint64_t step = (keys + AUDIT_PRODUCTS_MAX - 1) / AUDIT_PRODUCTS_MAX;

    *out = (struct audit){.all = step == 1};
    for (uint64_t key = 0; status == HF_OK && key < keys;) {
        uint64_t count = 0;
        for (; status == HF_OK && count < BATCH && key < keys; count++) {
            status = send_get(&client, key, record);
            key += step;
        }
        if (status == HF_OK)
            status = receive_batch(&client, count, out, record);
    }
    client_close(&client);
    return status;
}
