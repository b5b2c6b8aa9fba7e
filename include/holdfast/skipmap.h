/* skipmap.h - concurrent ordered map: byte-string keys in order, to pointers.
 *
 * A list of all keys in order, and shorter lists above it: every key is in the
 * lowest, one of two also in the next, one of four in the one above. Who looks
 * for a key runs along the highest list and steps down before it would go too
 * far.
 *
 *   level 2   head ------------------------> dan -----------------> end
 *   level 1   head ---------> bob ---------> dan ---------> fay --> end
 *   level 0   head -> ann --> bob --> cat -> dan --> eve -> fay --> end
 *
 * The lowest list is the truth, the others are short cuts. Nobody takes a lock:
 * a key comes in when a compare-and-swap links it at level 0, and is out when
 * one takes its value away; the links follow, by whoever comes by.
 *
 * Order: as memcmp() says, and of two keys that begin alike the shorter first.
 * Numbers sort as numbers when written with the highest byte first:
 * hf_skipmap_key_u64() does so for unsigned 64-bit numbers.
 *
 * Values. A value is any pointer but NULL. By default it is the caller's: the
 * map hands out what was put in and frees nothing. With `free_value` it is the
 * map's from the moment it got in: free_value is called once for each value
 * that left (replaced, removed, taken, or there at close), when nobody can be
 * reading it any more. Then a pointer that the map gave out is good only
 * between hf_skipmap_enter() and hf_skipmap_leave(); hf_skipmap_read() does
 * both around a function. A value that did not get in (HF_EXISTS, HF_NOMEM,
 * ...) stays the caller's.
 *
 * Threads: any call but close may overlap any other, from any thread. Functions
 *          that are passed in run without locks and may use the map, except
 *          free_value, which must not.
 * Memory:  keys are copied: about 75 bytes a key and the key itself, with
 *          free_value 50 more. What left is freed when nobody can be reading
 *          it. Any call may return HF_NOMEM in a thread's first call; else
 *          only those that allocate. Then nothing was changed.
 * Time:    none.
 *
 *   call                     linearizable   lock-free   allocates
 *   get, read                yes            yes         no
 *   put                      yes            yes         new key, free_value
 *   put if absent            yes            yes         new key
 *   replace if equal         yes            yes         with free_value
 *   remove, remove if equal  yes            yes         no
 *   first, last, floor,      yes (1)        yes         no
 *     ceiling, lower, higher
 *   take first               removal (2)    yes         no
 *   visit                    each key (3)   yes         no
 *   size                     no (4)         yes         no
 *
 *   (1) Key and value as they were together at one instant of the call, "none"
 *       too. If during the call the very same pointer was put, replaced and put
 *       again, the value may be of another instant than the key.
 *   (2) Each key goes to one taker, and it was the smallest at one instant of
 *       the call; "empty" is exact. But a smaller key that comes in meanwhile
 *       may be passed by. Without others who put, it is linearizable.
 *   (3) In order, none twice. A key that is there during the whole visit is
 *       visited, one that never is is not; others may be or not.
 *   (4) Exact while nobody inserts or removes.
 *
 * Example:
 *
 *   struct hf_skipmap *map;
 *   char name[8];
 *   int one = 1;
 *   struct hf_skipmap_entry entry = {.key = name, .key_cap = sizeof name};
 *   assert(hf_skipmap_open(&map, NULL) == HF_OK);
 *   assert(hf_skipmap_put(map, "dan", 3, &one, NULL) == HF_OK);
 *   assert(hf_skipmap_put(map, "ann", 3, &one, NULL) == HF_OK);
 *   assert(hf_skipmap_ceiling(map, "bob", 3, &entry) == HF_OK);
 *   assert(entry.key_len == 3 && memcmp(name, "dan", 3) == 0);
 *   assert(hf_skipmap_take_first(map, &entry) == HF_OK);
 *   assert(memcmp(name, "ann", 3) == 0 && entry.value == &one);
 *   assert(hf_skipmap_size(map) == 1);
 *   hf_skipmap_close(map);
 */
#ifndef HOLDFAST_SKIPMAP_H
#define HOLDFAST_SKIPMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_SKIPMAP_KEY_MAX (1u << 26) /* bytes of a key */

struct hf_skipmap;

struct hf_skipmap_opts {
    const char *name; /* for hf_inspect() */
    /* How many levels a key gets is drawn at random, by each thread for itself,
     * from this; 0 means a fixed number. The same seed and the same calls make
     * the same map. */
    uint64_t seed;
    /* See "Values" above; NULL: values are the caller's. */
    void (*free_value)(void *context, void *value);
    void *context;
};

/* What the ordered calls give out. `key` is the caller's buffer of `key_cap`
 * bytes, or NULL: then only the length is told. Of a longer key the first
 * key_cap bytes are copied and key_len is more than key_cap. */
struct hf_skipmap_entry {
    void *key;      /* in: where the key is copied to, or NULL */
    size_t key_cap; /* in */
    size_t key_len; /* out: the whole key's length */
    void *value;    /* out */
};

struct hf_skipmap_stats {
    uint64_t size;     /* keys */
    uint32_t levels;   /* in use */
    uint64_t restarts; /* walks that met a change and began anew, since open */
    uint64_t garbage;  /* nodes and values that wait to be freed */
};

/* HF_INVALID: map is NULL. HF_NOMEM. */
enum hf_status hf_skipmap_open(struct hf_skipmap **map,
                               const struct hf_skipmap_opts *opts);
/* Frees it, with all keys. Nobody may be inside a call or a guard. NULL is
 * allowed. */
void hf_skipmap_close(struct hf_skipmap *map);

/* All calls below: HF_INVALID if map is NULL, key is NULL (unless key_len is
 * 0), key_len is above HF_SKIPMAP_KEY_MAX, a value that goes in is NULL, a
 * function or an entry is NULL. Other outputs may be NULL. HF_NOMEM as said
 * above. */

/* HF_OK, HF_NOTFOUND. */
enum hf_status hf_skipmap_get(struct hf_skipmap *map, const void *key,
                              size_t key_len, void **value);
/* Runs `read` on the value, which lasts at least as long as that runs. HF_OK,
 * HF_NOTFOUND. */
enum hf_status hf_skipmap_read(struct hf_skipmap *map, const void *key,
                               size_t key_len,
                               void (*read)(void *context, void *value),
                               void *context);
/* The guard: what the map holds when this thread enters or gives out or puts
 * in later is not freed before it leaves. Guards nest, and calls inside one
 * are cheaper. What leaves the map meanwhile waits: do not stay for long. */
enum hf_status hf_skipmap_enter(struct hf_skipmap *map);
void hf_skipmap_leave(struct hf_skipmap *map);

/* Puts the value there, whether the key is new or not. `old` gets the value
 * before, or NULL. HF_OK. */
enum hf_status hf_skipmap_put(struct hf_skipmap *map, const void *key,
                              size_t key_len, void *value, void **old);
/* HF_OK: new. HF_EXISTS: nothing changed, `existing` gets the value. */
enum hf_status hf_skipmap_put_if_absent(struct hf_skipmap *map, const void *key,
                                        size_t key_len, void *value,
                                        void **existing);
/* HF_OK: it was `expected` and is now `value`. HF_EXISTS: it is another;
 * HF_NOTFOUND. */
enum hf_status hf_skipmap_replace_if_equal(struct hf_skipmap *map,
                                           const void *key, size_t key_len,
                                           void *expected, void *value);
/* HF_OK: `old` gets the value that was there. HF_NOTFOUND. */
enum hf_status hf_skipmap_remove(struct hf_skipmap *map, const void *key,
                                 size_t key_len, void **old);
/* HF_OK, HF_NOTFOUND, HF_EXISTS: it is another. */
enum hf_status hf_skipmap_remove_if_equal(struct hf_skipmap *map,
                                          const void *key, size_t key_len,
                                          void *expected);

/* The smallest and the greatest key. HF_OK, HF_EMPTY. */
enum hf_status hf_skipmap_first(struct hf_skipmap *map,
                                struct hf_skipmap_entry *entry);
enum hf_status hf_skipmap_last(struct hf_skipmap *map,
                               struct hf_skipmap_entry *entry);
/* The greatest key that is not above (floor) or is below (lower) the given one,
 * the smallest that is not below (ceiling) or is above (higher) it. HF_OK,
 * HF_NOTFOUND. */
enum hf_status hf_skipmap_floor(struct hf_skipmap *map, const void *key,
                                size_t key_len, struct hf_skipmap_entry *entry);
enum hf_status hf_skipmap_lower(struct hf_skipmap *map, const void *key,
                                size_t key_len, struct hf_skipmap_entry *entry);
enum hf_status hf_skipmap_ceiling(struct hf_skipmap *map, const void *key,
                                  size_t key_len,
                                  struct hf_skipmap_entry *entry);
enum hf_status hf_skipmap_higher(struct hf_skipmap *map, const void *key,
                                 size_t key_len,
                                 struct hf_skipmap_entry *entry);

/* Removes the smallest key and gives it out: the map as a priority queue, see
 * (2) above. HF_OK, HF_EMPTY. HF_FULL: the entry has a buffer and the key does
 * not fit; nothing was taken, key_len tells the room that it needs. */
enum hf_status hf_skipmap_take_first(struct hf_skipmap *map,
                                     struct hf_skipmap_entry *entry);

/* Calls `visit` for the keys from `from` up to but not with `to`, in order,
 * until it returns false; see (3) above. NULL: from the first, to the last. The
 * whole visit is inside a guard. HF_OK also if it was ended early. */
enum hf_status hf_skipmap_visit(struct hf_skipmap *map, const void *from,
                                size_t from_len, const void *to, size_t to_len,
                                bool (*visit)(void *context, const void *key,
                                              size_t key_len, void *value),
                                void *context);

/* 0 if map is NULL. */
uint64_t hf_skipmap_size(struct hf_skipmap *map);
/* All 0 if map is NULL. */
void hf_skipmap_stats(struct hf_skipmap *map, struct hf_skipmap_stats *out);

/* A number as a key of 8 bytes that sorts as the number does, and back. */
static inline void hf_skipmap_key_u64(unsigned char key[8], uint64_t number)
{
    for (int i = 0; i < 8 && key != NULL; i++)
        key[i] = (unsigned char)(number >> (56 - 8 * i));
}

static inline uint64_t hf_skipmap_u64_of(const unsigned char key[8])
{
    uint64_t number = 0;

    for (int i = 0; i < 8 && key != NULL; i++)
        number = number << 8 | key[i];
    return number;
}

#ifdef __cplusplus
}
#endif

#endif
