// skipmap_cds.cpp - libcds' SkipListMap, with hazard pointers.
#include <cds/init.h>

#include <cds/container/skip_list_map_hp.h>
#include <cds/gc/hp.h>

#include "bytes_key.h"

struct bytes_compare {
    int operator()(std::string_view a, std::string_view b) const
    {
        return a.compare(b);
    }
};

struct map_traits : public cds::container::skip_list::traits {
    typedef bytes_compare compare;
};

using map =
    cds::container::SkipListMap<cds::gc::HP, std::string, void *, map_traits>;

// The library is set up when the first map is opened, for good.
static void set_up()
{
    static bool done = false;
    if (done)
        return;
    done = true;
    cds::Initialize();
    static cds::gc::HP collector(map::c_nHazardPtrCount + 4,
                                 CONTEST_THREADS_MAX + 4);
    cds::threading::Manager::attachThread();
}

static map &of(contest_thread *thread)
{
    return *static_cast<map *>(thread->self);
}

CONTEST_INLINE bool map_get(contest_thread *thread, const table_key *key,
                            void **value)
{
    return of(thread).find(bytes_key(key), [value](map::value_type &found) {
        *value = found.second;
    });
}

CONTEST_INLINE void map_put(contest_thread *thread, const table_key *key,
                            void *value)
{
    // update() would call us while others read; an insert that fails left the
    // same value in the map.
    of(thread).insert(std::string(bytes_key(key)), value);
}

CONTEST_INLINE void map_remove(contest_thread *thread, const table_key *key)
{
    of(thread).erase(bytes_key(key));
}

static void *map_open(const contest_work *)
{
    set_up();
    return new map();
}

static void map_close(void *self)
{
    delete static_cast<map *>(self);
}

static void map_enter(contest_thread *thread)
{
    cds::threading::Manager::attachThread();
    table_fill(thread, map_get, map_put);
}

static void map_leave(contest_thread *)
{
    cds::threading::Manager::detachThread();
}

static void map_run(contest_thread *thread)
{
    table_run(thread, map_get, map_put, map_remove);
}

static void map_check(contest_thread *thread)
{
    table_check(thread, map_get);
}

extern "C" const contest_side skipmap_cds = {
    "libcds", map_open, map_close, map_run, map_enter, map_leave, map_check,
};
