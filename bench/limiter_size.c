/* limiter_size.c - how much memory a key of the limiter takes.
 *
 *   limiter_size COUNT [KEY_BYTES]
 *
 * Takes one permit of each of COUNT keys (of 16 bytes) and prints the bytes per
 * key twice: by the growth of the process, which is what the machine pays, and
 * by the limiter's own count. Then takes as many of new keys while the old ones
 * become whole again, ten times, and prints by how much the process grew from
 * the sixth time to the last, and how many keys are kept for each that has
 * something spent.
 */
#include <string.h>
#include <unistd.h>

#include "drive.h"
#include "holdfast/limiter.h"

#define SECOND UINT64_C(1000000000)

static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*u %llu", &pages) != 1)
        drive_fail("/proc/self/statm", "cannot be read");
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Keys `from` on, spread over a second from `start_ns` on. */
static void take_each(struct hf_limiter *limiter, uint64_t from, uint64_t count,
                      size_t key_bytes, uint64_t start_ns)
{
    char key[HF_LIMITER_KEY_MAX];

    memset(key, 'k', sizeof key);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t number = from + i;
        memcpy(key, &number, key_bytes < 8 ? key_bytes : 8);
        struct hf_limiter_ask ask = {
            .key = key, .key_len = key_bytes, .cost = 1};
        struct hf_limiter_call call = {
            .asks = &ask, .count = 1, .now_ns = start_ns + i * SECOND / count};
        struct hf_limiter_answer answer;
        if (hf_limiter_take(limiter, &call, &answer) != HF_OK ||
            !answer.allowed)
            drive_fail("limiter_size", "a key was not allowed");
    }
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3)
        drive_fail("usage", "limiter_size COUNT [KEY_BYTES]");
    uint64_t count = drive_number(argv[1]);
    size_t key_bytes = argc == 3 ? drive_number(argv[2]) : 16;
    struct hf_limiter *limiter;
    struct hf_limiter_stats before, after;

    if (key_bytes > HF_LIMITER_KEY_MAX ||
        hf_limiter_open(&limiter, NULL) != HF_OK)
        drive_fail("hf_limiter_open", "failed");
    hf_limiter_stats(limiter, &before);
    uint64_t resident = resident_bytes();
    take_each(limiter, 0, count, key_bytes, SECOND);
    hf_limiter_stats(limiter, &after);
    if (after.keys != count)
        drive_fail("limiter_size", "it counts other than was put in");
    uint64_t full = resident_bytes();
    printf("keys %llu resident %.1f counted %.1f\n", (unsigned long long)count,
           (double)(full - resident) / (double)count,
           (double)(after.bytes - before.bytes) / (double)count);
    for (uint64_t i = 1; i <= 10; i++) {
        take_each(limiter, i * count, count, key_bytes, (1 + i) * SECOND);
        if (i == 6)
            full = resident_bytes();
    }
    hf_limiter_stats(limiter, &after);
    printf("stream %llu growth %.3f keys %.3f\n",
           (unsigned long long)(10 * count),
           (double)(resident_bytes() - resident) / (double)(full - resident),
           (double)after.keys / (double)count);
    hf_limiter_close(limiter);
    return 0;
}
