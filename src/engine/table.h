/* Which models requests find, by name and version.
 *
 * A name, once known, stays; so does each slot of it, a place for one version that is served. The
 * model in a slot comes and goes: the slot's lifetime says whether new requests may have it and
 * how many have it still. So a request finds its model without a lock, and what it found cannot
 * go away under it.
 *
 * Thread: table_take and table_release from any, lock-free. What changes the table is the keeper's
 * (loader.h) alone; states are read and written under the table's lock. */
#ifndef TELLTALE_ENGINE_TABLE_H
#define TELLTALE_ENGINE_TABLE_H

#include "engine/control.h"
#include "sync/growing.h"
#include "sync/lifetime.h"
#include "sync/pending.h"

#include <pthread.h>

struct engine_model;
struct model_name;

struct model_slot {
    struct pending to_kick;      /* in the engine's list of batchers to be woken */
    struct mpsc_node kick_node;
    struct growing_node node;    /* of its name's */
    struct model_name *name;
    struct lifetime lifetime;    /* of model */
    struct engine_model *model;  /* written by the keeper while the lifetime is over */
    bool is_taken;               /* the keeper's: a model is in it, or about to be */
    bool is_ended;               /* the keeper's: no new request finds it */
    struct model_slot *next_closing; /* the keeper's */
};

struct version_state {
    struct version_state *next; /* ascending */
    uint64_t version;
    enum model_state state;
    char *reason; /* NULL: none */
};

struct model_name {
    struct growing_node node;     /* of its bucket; first */
    struct growing_node all_node;
    char *text;
    struct growing slots;
    struct counter changes;       /* how often the slots have changed: see table_take */
    struct counter served;        /* slots that new requests find */
    /* under the table's lock */
    struct version_state *versions;
    uint64_t first_version;       /* the first ever served: its trace has the bare name */
    uint64_t loaded_stamp;        /* of the files that were last loaded, or failed to; 0: never */
    uint64_t seen_stamp;          /* of the poll before */
    bool is_wanted;               /* should be served: at start, or since a poll saw it */
    bool is_stamped;              /* loaded_stamp holds */
};

enum { TABLE_BUCKETS = 256 };
struct table {
    struct growing buckets[TABLE_BUCKETS];
    struct growing all;
    struct counter served;        /* slots that new requests find */
    pthread_mutex_t lock;
};

void table_init(struct table *table);
void table_done(struct table *table); /* of names and slots; models are gone before */

struct model_name *table_find(const struct table *table, struct view name); /* NULL: not known */
/* Finds or makes; NULL: no memory. Takes the lock. */
struct model_name *table_name(struct table *table, struct view name);
struct model_name *table_first(const struct table *table);
struct model_name *table_next(const struct model_name *name);

/* A reference to the version, or with an empty one to the highest. NULL: not served. */
struct model_slot *table_take(const struct table *table, struct view name, struct view version);
/* A free slot of the name, to be filled by table_publish; NULL: no memory. */
struct model_slot *table_slot(struct model_name *name);
/* Lets requests find the models in the slots, and none but these under the name: the others are
 * ended and put in front of the list at *ended, to be closed once their lifetime is over. */
void table_publish(struct table *table, struct model_name *name, struct model_slot *const *slots,
                   size_t count, struct model_slot **ended);
/* The slot's model is gone: it may take another. */
void table_vacate(struct model_slot *slot);

/* Under the lock: sets a version's state (reason NULL: none). False: no memory. */
bool table_set_state(struct model_name *name, uint64_t version, enum model_state state,
                     const char *reason);
struct version_state *table_state(struct model_name *name, uint64_t version); /* NULL: none */

#endif
