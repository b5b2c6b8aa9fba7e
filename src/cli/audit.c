/* audit.c - STOCK SET and STOCK GET in batches over one connection. */
#include "cli/audit.h"

#include "resp/resp.h"

#define BATCH       500
#define DEADLINE_NS 60000000000ull /* for one batch */
#define CLIENT      UINT32_MAX     /* its number in a history */

/* STOCK SET of `total`, or STOCK GET without one. */
static enum hf_status send_call(struct client *client, uint64_t key,
                                const char *total, struct record *record)
{
    char name[32];
    size_t count = total != NULL ? 4 : 3;

    snprintf(name, sizeof name, "bench:%08llu", (unsigned long long)key);
    struct hf_bytes args[] = {
        hf_bytes_text("STOCK"), hf_bytes_text(total != NULL ? "SET" : "GET"),
        hf_bytes_text(name), hf_bytes_text(total != NULL ? total : "")};
    (void)record_call(record, CLIENT, args, count);
    return client_send(client, count, args);
}

static void judge(struct audit *audit, struct hf_bytes reply)
{
    int64_t total;
    int64_t available;
    int64_t reserved;
    int64_t sold;

    audit->products++;
    if (!resp_field_number(reply, "total", &total) ||
        !resp_field_number(reply, "available", &available) ||
        !resp_field_number(reply, "reserved", &reserved) ||
        !resp_field_number(reply, "sold", &sold) || total < 0 ||
        available < 0 || reserved < 0 || sold < 0 ||
        total != available + reserved + sold) {
        audit->broken++;
        return;
    }
    audit->reserved += (uint64_t)reserved;
    audit->sold += (uint64_t)sold;
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

/* Asks for every product, or every `step`th. */
static enum hf_status ask_all(const struct client_address *address,
                              uint64_t keys, uint64_t step, const char *total,
                              struct audit *audit, struct record *record)
{
    struct client client;
    enum hf_status status = client_open(&client, address, 0, NULL);

    for (uint64_t key = 0; status == HF_OK && key < keys;) {
        uint64_t count = 0;
        for (; status == HF_OK && count < BATCH && key < keys; count++) {
            status = send_call(&client, key, total, record);
            key += step;
        }
        if (status == HF_OK)
            status = receive_batch(&client, count, audit, record);
    }
    client_close(&client);
    return status;
}

enum hf_status audit_prepare(const struct client_address *address,
                             uint64_t keys, uint64_t total,
                             struct record *record)
{
    char digits[HF_DIGITS_MAX + 1];

    digits[hf_print_u64(digits, total)] = '\0';
    return ask_all(address, keys, 1, digits, NULL, record);
}

enum hf_status audit_read(const struct client_address *address, uint64_t keys,
                          struct audit *out, struct record *record)
{
    uint64_t step = (keys + AUDIT_PRODUCTS_MAX - 1) / AUDIT_PRODUCTS_MAX;

    *out = (struct audit){.all = step == 1};
    return ask_all(address, keys, step, NULL, out, record);
}
