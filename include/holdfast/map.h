/* map.h - concurrent hash map: byte-string keys to pointers, or a set of keys.
 *
 * A table of buckets, each one cache line with room for six nodes. A node holds
 * a copy of its key and the value; the first word of a bucket holds one byte
 * of each key's hash, so that a look-up reads one line, finds the one node that
 * it may be, and reads that. What does not fit goes to further buckets behind.
 *
 *   table        bucket: tags (a byte of hash each), nodes, more
 *   +---+      +--+--+--+--+--+--+---+---+---+---+---+---+------+
 *   | 0 |  .-->|7f|03|a1|  |  |  | * | * | * |   |   |   | more |--> bucket
 *   | 1 |--'   +--+--+--+--+--+--+-|-+-|-+-|-+---+---+---+------+
 *   | 2 |                          |   |   `--> hash, value, key
 *   | 3 |                          |   `--> hash, value, key
 *   +---+                          `--> hash, value, key
 *
 * Growth: a table twice the size is put beside the old one, and those who
 * insert or remove move a few buckets each. A moved bucket says so, and who
 * comes there goes on in the new table: nobody waits for the growth. The
 * table does not shrink: removing gives back the node, not the bucket.
 *
 * Values. A value is any pointer but NULL. By default it is the caller's: the
 * map hands out what was put in and frees nothing. With `free_value` it is the
 * map's from the moment it got in: free_value is called once for each value
 * that left (replaced, removed, or there at close), when nobody can be reading
 * it any more. Then a pointer that hf_map_get() gave is good only between
 * hf_map_enter() and hf_map_leave(); hf_map_read() does both around a function.
 * A value that did not get in (HF_EXISTS, HF_NOMEM, ...) stays the caller's.
 *
 * Threads: any call but close may overlap any other, from any thread. Functions
 *          that are passed in run outside locks and may use the map, except
 *          free_value and hash, which must not.
 * Memory:  keys are copied. A key costs 48 bytes, its own, and 16 to 32 in the
 *          table. Nodes and tables that left are freed when nobody can be
 *          reading them. A call may return HF_NOMEM, also a get in a thread's
 *          first call; then nothing was changed.
 * Time:    only the wait of compute-if-absent has a deadline, by opts.clock.
 *
 *   call                     linearizable  lock-free          allocates
 *   get, read                yes           yes                no
 *   put, replace, merge,     yes           if the key is      a node for a new
 *     compute if present                   there (1)          key (1)
 *   put if absent, add       yes           if it is there     for a new key
 *   remove                   yes           if it is not       no
 *   compute if absent        yes           if it is there     for a new key
 *   visit                    each key (2)  yes                a little
 *   size                     no (3)        yes                no
 *
 *   (1) With free_value: a new node and the bucket's lock, each time.
 *   (2) A key that is there during the whole visit is visited exactly once,
 *       one that never is there is not visited; one that is removed or put
 *       meanwhile may be, and again if it went and came back.
 *   (3) Exact while nobody inserts or removes.
 *
 * Example:
 *
 *   struct hf_map *map;
 *   assert(hf_map_open(&map, NULL) == HF_OK);
 *   int one = 1;
 *   void *found;
 *   assert(hf_map_put(map, "ann", 3, &one, NULL) == HF_OK);
 *   assert(hf_map_get(map, "ann", 3, &found) == HF_OK && found == &one);
 *   assert(hf_map_add(map, "bob", 3) == HF_OK);     // new
 *   assert(hf_map_add(map, "bob", 3) == HF_EXISTS); // seen
 *   assert(hf_map_remove(map, "ann", 3, &found) == HF_OK && found == &one);
 *   assert(hf_map_size(map) == 1);
 *   hf_map_close(map);
 */
#ifndef HOLDFAST_MAP_H
#define HOLDFAST_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_MAP_KEY_MAX      (1u << 30)          /* bytes of a key */
#define HF_MAP_CAPACITY_MAX (UINT64_C(1) << 40) /* keys to make room for */

struct hf_map;

struct hf_map_opts {
    const char *name;  /* for hf_inspect() */
    uint64_t capacity; /* keys to make room for at once; 0 means 64 */
    /* Keys come from strangers, so the hash is keyed: who does not know the
     * seed cannot prepare keys that fall into one bucket. Both 0: a random
     * seed. (Up to 32 bytes two or three keyed multiplications, then SipHash;
     * if strangers can also measure how long each look-up takes, pass a
     * SipHash for all.) */
    uint64_t seed[2];
    /* Instead of that hash; all 64 bits must be good. NULL: that. */
    uint64_t (*hash)(void *context, const void *key, size_t key_len);
    /* See "Values" above; NULL: values are the caller's. */
    void (*free_value)(void *context, void *value);
    void *context;                /* of both functions above */
    const struct hf_clock *clock; /* NULL: the system's */
};

struct hf_map_stats {
    uint64_t size;          /* keys */
    uint64_t bucket_count;  /* of the table that is in use */
    uint64_t moving_count;  /* buckets that a growth has still to move */
    uint64_t growths;       /* begun since open */
    uint64_t growths_nomem; /* put off because there was no memory */
    uint64_t made;          /* compute-if-absent functions that ran */
    uint64_t made_failed;   /* of these: returned an error */
    uint64_t made_waits;    /* callers that waited for another's function */
    uint64_t garbage;       /* nodes and tables that wait to be freed */
};

/* HF_INVALID: map is NULL or capacity above the maximum. HF_NOMEM. */
enum hf_status hf_map_open(struct hf_map **map, const struct hf_map_opts *opts);
/* Frees it, with all keys. Nobody may be inside a call or a guard. NULL is
 * allowed. */
void hf_map_close(struct hf_map *map);
/* From now on compute-if-absent starts no function and waits for none, and
 * those who wait leave: HF_CLOSED. All else goes on. Any thread, any time. */
void hf_map_shutdown(struct hf_map *map);

/* All calls below: HF_INVALID if map is NULL, key is NULL (unless key_len is
 * 0), key_len is above HF_MAP_KEY_MAX, a value that goes in is NULL, or a
 * function is NULL. Outputs may be NULL. HF_NOMEM as said above. */

/* HF_OK, HF_NOTFOUND. */
enum hf_status hf_map_get(struct hf_map *map, const void *key, size_t key_len,
                          void **value);
/* Runs `read` on the value, which lasts at least as long as that runs. HF_OK,
 * HF_NOTFOUND. */
enum hf_status hf_map_read(struct hf_map *map, const void *key, size_t key_len,
                           void (*read)(void *context, void *value),
                           void *context);
/* The guard: what this thread finds in the map between the two is not freed
 * before it leaves. Guards nest, and calls inside one are cheaper. What leaves
 * the map meanwhile waits: do not stay for long. */
enum hf_status hf_map_enter(struct hf_map *map);
void hf_map_leave(struct hf_map *map);

/* Puts the value there, whether the key is new or not. `old` gets the value
 * before, or NULL. HF_OK. */
enum hf_status hf_map_put(struct hf_map *map, const void *key, size_t key_len,
                          void *value, void **old);
/* HF_OK: new. HF_EXISTS: nothing changed, `existing` gets the value. */
enum hf_status hf_map_put_if_absent(struct hf_map *map, const void *key,
                                    size_t key_len, void *value,
                                    void **existing);
/* The map as a set: HF_OK: new, HF_EXISTS: seen before. The value of such a
 * key is HF_MAP_MEMBER; free_value never gets it. */
enum hf_status hf_map_add(struct hf_map *map, const void *key, size_t key_len);
extern char hf_map_member;
#define HF_MAP_MEMBER ((void *)&hf_map_member)

/* HF_OK: it was `expected` and is now `value`. HF_EXISTS: it is another;
 * HF_NOTFOUND. */
enum hf_status hf_map_replace_if_equal(struct hf_map *map, const void *key,
                                       size_t key_len, void *expected,
                                       void *value);
/* HF_OK: `old` gets the value that was there. HF_NOTFOUND. */
enum hf_status hf_map_remove(struct hf_map *map, const void *key,
                             size_t key_len, void **old);
/* HF_OK, HF_NOTFOUND, HF_EXISTS: it is another. */
enum hf_status hf_map_remove_if_equal(struct hf_map *map, const void *key,
                                      size_t key_len, void *expected);

/* Gets the value, or makes it: `make` runs once, however many threads ask,
 * and the others wait for it, at most until `deadline_ns`. Nobody else waits:
 * to other calls the key is not there until the value is. One that puts a
 * value there meanwhile wins; what was made is then not used, and given to
 * free_value if there is one.
 *
 *   HF_OK       made by this call; `value` gets it
 *   HF_EXISTS   it was there, or came first: `value` gets that
 *   HF_TIMEOUT  another's function was not ready in time
 *   HF_INVALID  also: this thread is making it already, or whoever makes it
 *               waits for something that this thread is making
 *   HF_CLOSED   after hf_map_shutdown()
 *   other       what `make` returned instead of HF_OK (HF_NOMEM if it made
 *               NULL). Nothing is kept of that: of those who waited one
 *               tries with its own function, and so on.
 */
enum hf_status
hf_map_compute_if_absent(struct hf_map *map, const void *key, size_t key_len,
                         enum hf_status (*make)(void *context, const void *key,
                                                size_t key_len, void **value),
                         void *context, uint64_t deadline_ns, void **value);

/* Replaces the value by what `change` makes of it: `*value` is the value that
 * is there and then what shall be there, NULL to remove the key. If another
 * thread changed the key meanwhile, `change` is called again with what is
 * there now: what it made before was not used (and was given to free_value, if
 * there is one and it was new). Runs inside a guard.
 * HF_OK: `result` gets what is there now, or NULL. HF_NOTFOUND. Other: what
 * `change` returned instead of HF_OK; nothing changed. */
enum hf_status hf_map_compute_if_present(
    struct hf_map *map, const void *key, size_t key_len,
    enum hf_status (*change)(void *context, const void *key, size_t key_len,
                             void **value),
    void *context, void **result);

/* Puts `value` if the key is new, else what `merge` makes of the two; NULL
 * removes the key. May be called again, as in compute-if-present, and runs
 * inside a guard. `value` stays the caller's unless it is the result.
 * HF_OK: `result` gets what is there now, or NULL. */
enum hf_status
hf_map_merge(struct hf_map *map, const void *key, size_t key_len, void *value,
             void *(*merge)(void *context, void *old, void *value),
             void *context, void **result);

/* Calls `visit` for the keys, in no order, until it returns false; see (2)
 * above. Each call runs inside a guard. HF_OK also if it was ended early;
 * HF_NOMEM: not all were visited. */
enum hf_status hf_map_visit(struct hf_map *map,
                            bool (*visit)(void *context, const void *key,
                                          size_t key_len, void *value),
                            void *context);

/* 0 if map is NULL. */
uint64_t hf_map_size(struct hf_map *map);
void hf_map_stats(struct hf_map *map, struct hf_map_stats *out);

#ifdef __cplusplus
}
#endif

#endif
