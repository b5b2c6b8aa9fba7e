/* hash.c - SipHash-1-3: one round per 8 bytes, three to finish. */
#include "base/hash.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

struct lanes {
    uint64_t a, b, c, d;
};

static inline uint64_t rotate_left(uint64_t x, unsigned bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static inline void stir(struct lanes *v)
{
    v->a += v->b;
    v->c += v->d;
    v->b = rotate_left(v->b, 13) ^ v->a;
    v->d = rotate_left(v->d, 16) ^ v->c;
    v->a = rotate_left(v->a, 32);
    v->c += v->b;
    v->a += v->d;
    v->b = rotate_left(v->b, 17) ^ v->c;
    v->d = rotate_left(v->d, 21) ^ v->a;
    v->c = rotate_left(v->c, 32);
}

static inline void absorb(struct lanes *v, uint64_t word)
{
    v->d ^= word;
    stir(v);
    v->a ^= word;
}

/* If the system has no random bytes, one that at least differs from place to
 * place and from run to run. */
struct hf_hash_seed hf_hash_seed(struct hf_hash_seed given)
{
    struct hf_hash_seed seed = given;
    struct timespec now = {0};

    if (seed.key[0] != 0 || seed.key[1] != 0)
        return seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        seed.key[0] = (uint64_t)now.tv_nsec;
        seed.key[1] = (uint64_t)(uintptr_t)&now;
    }
    return seed;
}

/* The bytes behind the last whole word, as a number. */
static inline uint64_t tail_of(struct hf_bytes bytes)
{
    size_t left = bytes.len % 8;
    uint64_t word = 0;

    if (bytes.len > 8 && left > 0) { /* the last 8 bytes in one read */
        memcpy(&word, bytes.data + bytes.len - 8, 8);
        return word >> (64 - 8 * left);
    }
    for (const size_t whole = bytes.len - left; left > 0; left--)
        word = word << 8 | (unsigned char)bytes.data[whole + left - 1];
    return word;
}

uint64_t hf_hash(struct hf_hash_seed seed, struct hf_bytes bytes)
{
    struct lanes v = {
        seed.key[0] ^ 0x736f6d6570736575u,
        seed.key[1] ^ 0x646f72616e646f6du,
        seed.key[0] ^ 0x6c7967656e657261u,
        seed.key[1] ^ 0x7465646279746573u,
    };

    for (size_t at = 0; at + 8 <= bytes.len; at += 8) {
        uint64_t word;
        memcpy(&word, bytes.data + at, 8);
        absorb(&v, word);
    }
    absorb(&v, (uint64_t)bytes.len << 56 | tail_of(bytes));
    v.c ^= 0xff;
    stir(&v);
    stir(&v);
    stir(&v);
    return v.a ^ v.b ^ v.c ^ v.d;
}
