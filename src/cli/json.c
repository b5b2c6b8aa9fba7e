/* json.c - escaping. */
#include "cli/json.h"

static enum hf_status put_char(struct hf_buf *out, struct hf_bytes text,
                               size_t *at)
{
    struct hf_bytes left = hf_bytes(text.data + *at, text.len - *at);
    unsigned char c = (unsigned char)left.data[0];
    size_t len = hf_utf8_len(left);

    *at += len > 0 ? len : 1;
    if (len == 0)
        return hf_buf_append(out, "\\ufffd", 6);
    if (c == '"')
        return hf_buf_append(out, "\\\"", 2);
    if (c == '\\')
        return hf_buf_append(out, "\\\\", 2);
    if (c == '\n')
        return hf_buf_append(out, "\\n", 2);
    if (c < 0x20 || c == 0x7f)
        return hf_buf_format(out, "\\u%04x", c);
    return hf_buf_append(out, left.data, len);
}

enum hf_status json_string(struct hf_buf *out, struct hf_bytes text)
{
    enum hf_status status = hf_buf_append(out, "\"", 1);

    for (size_t at = 0; status == HF_OK && at < text.len;)
        status = put_char(out, text, &at);
    return status != HF_OK ? status : hf_buf_append(out, "\"", 1);
}

void json_print(const char *text)
{
    struct hf_buf quoted = {0};

    if (json_string(&quoted, hf_bytes_text(text)) == HF_OK)
        printf("%.*s", HF_SHOW(quoted));
    else
        printf("null");
    hf_buf_destroy(&quoted);
}
