/* make_products.c - makes products.h with an engine of an earlier build; see
 * make.sh. An image of format 2, of products without thresholds and attributes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hold/engine.h"
#include "hold/image.h"

enum { LINE = 36 };

static struct hold_engine *engine;

static void apply(struct hold_command c)
{
    static char record[HOLD_RECORD_MAX];

    c.now_us = 1000000000;
    size_t len = hold_encode(&c, record);
    if (hold_prepare(engine, &c) != HF_OK ||
        hold_apply(engine, hf_bytes(record, len))->code != HOLD_OK)
        exit(1);
}

static enum hf_status print(void *context, const void *data, size_t len)
{
    const unsigned char *bytes = data;

    (void)context;
    for (size_t i = 0; i < len; i++)
        printf("%s%02x%s", i % LINE == 0 ? "    \"" : "", bytes[i],
               i == len - 1           ? "\";\n"
               : i % LINE == LINE - 1 ? "\"\n"
                                      : "");
    return HF_OK;
}

int main(void)
{
    struct hf_bytes apple = hf_bytes_text("apple");
    struct hf_bytes pear = hf_bytes_text("pear");

    engine = hold_new((struct hf_hash_seed){{1, 2}});
    apply((struct hold_command){.kind = HOLD_RESTART, .flags = HOLD_GRAPH});
    apply((struct hold_command){
        .kind = HOLD_STOCK_SET, .name = apple, .amount = 10});
    apply((struct hold_command){.kind = HOLD_STOCK_SET,
                                .name = pear,
                                .amount = 5,
                                .request = hf_bytes_text("q")});
    apply((struct hold_command){.kind = HOLD_RESERVE,
                                .name = hf_bytes_text("r"),
                                .ttl_ms = 1000,
                                .item_count = 2,
                                .items = {{apple, 3}, {pear, 1}}});
    apply((struct hold_command){.kind = HOLD_RESERVE,
                                .name = hf_bytes_text("s"),
                                .ttl_ms = 1000,
                                .item_count = 1,
                                .items = {{apple, 2}}});
    apply((struct hold_command){.kind = HOLD_CONFIRM,
                                .name = hf_bytes_text("s")});
    printf("/* products.h - an image of format 2, made by make.sh. */\n"
           "#ifndef TEST_SUPPORT_OLD_PRODUCTS_H\n"
           "#define TEST_SUPPORT_OLD_PRODUCTS_H\n\n"
           "static const char old_products[] =\n");
    if (hold_save(engine, print, NULL) != HF_OK)
        return 1;
    printf("\n#endif\n");
    return 0;
}
