/* See table.h. Invariant: names and slots are only ever added, so that a walk needs no lock. */
#include "engine/table.h"

#include "engine/engine_private.h"

#include <stdlib.h>

static struct model_name *name_of(struct growing_node *node) { return (struct model_name *)node; }

static struct model_slot *slot_of(struct growing_node *node) {
    return (struct model_slot *)((char *)node - offsetof(struct model_slot, node));
}

static struct model_name *of_all(struct growing_node *node) {
    return node != NULL
               ? (struct model_name *)((char *)node - offsetof(struct model_name, all_node))
               : NULL;
}

static unsigned bucket_of(struct view name) {
    uint32_t hash = 0x811c9dc5; /* FNV-1a */
    for (size_t i = 0; i < name.size; i++) hash = (hash ^ (unsigned char)name.data[i]) * 0x01000193;
    return (hash ^ hash >> 16) % TABLE_BUCKETS;
}

/* ---- names ---- */

struct model_name *table_find(const struct table *table, struct view name) {
    struct growing_node *node = growing_first(&table->buckets[bucket_of(name)]);
    while (node != NULL && !view_is(name, name_of(node)->text)) node = node->next;
    return node != NULL ? name_of(node) : NULL;
}

static struct model_name *make_name(struct view text) {
    struct model_name *name = calloc(1, sizeof *name);
    if (name != NULL) name->text = strndup(text.data, text.size);
    if (name != NULL && name->text == NULL) {
        free(name);
        name = NULL;
    }
    return name;
}

struct model_name *table_name(struct table *table, struct view text) {
    pthread_mutex_lock(&table->lock);
    struct model_name *name = table_find(table, text);
    if (name == NULL) {
        name = make_name(text);
        if (name != NULL) {
            growing_add(&table->buckets[bucket_of(text)], &name->node);
            growing_add(&table->all, &name->all_node);
        }
    }
    pthread_mutex_unlock(&table->lock);
    return name;
}

struct model_name *table_first(const struct table *table) { return of_all(growing_first(&table->all)); }

struct model_name *table_next(const struct model_name *name) { return of_all(name->all_node.next); }

/* ---- slots ---- */

/* The better of the two by version, the other one released. */
static struct model_slot *higher(struct model_slot *one, struct model_slot *other) {
    if (one == NULL) return other;
    const bool is_one = one->model->version >= other->model->version;
    engine_release(&(is_one ? other : one)->model->served);
    return is_one ? one : other;
}

static struct model_slot *walk(const struct model_name *name, struct view version) {
    struct model_slot *best = NULL;
    for (struct growing_node *node = growing_first(&name->slots); node != NULL; node = node->next) {
        struct model_slot *slot = slot_of(node);
        if (!lifetime_take(&slot->lifetime)) continue;
        if (version.size == 0)
            best = higher(best, slot);
        else if (view_is(version, slot->model->served.model->version))
            return slot;
        else
            engine_release(&slot->model->served);
    }
    return best;
}

struct model_slot *table_take(const struct table *table, struct view text, struct view version) {
    const struct model_name *name = table_find(table, text);
    if (name == NULL) return NULL;
    for (;;) {
        const int64_t changes = counter_get_acquire(&name->changes);
        struct model_slot *slot = walk(name, version);
        /* While we walked past the slot of a new model, which was not open yet, the old one may
         * have ended before we came to it. Who finds it ended sees that changes went on before
         * (lifetime.c, L3), and looks again. */
        if (counter_get(&name->changes) == changes) return slot;
        if (slot != NULL) engine_release(&slot->model->served);
    }
}

struct model_slot *table_slot(struct model_name *name) {
    for (struct growing_node *node = growing_first(&name->slots); node != NULL; node = node->next) {
        struct model_slot *slot = slot_of(node);
        if (slot->is_taken) continue;
        slot->is_taken = true;
        return slot;
    }
    struct model_slot *slot = aligned_alloc(64, (sizeof *slot + 63) / 64 * 64);
    if (slot == NULL) return NULL;
    *slot = (struct model_slot){.name = name, .is_taken = true};
    growing_add(&name->slots, &slot->node);
    return slot;
}

static bool is_among(const struct model_slot *slot, struct model_slot *const *slots, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (slots[i] == slot) return true;
    return false;
}

void table_publish(struct table *table, struct model_name *name, struct model_slot *const *slots,
                   size_t count, struct model_slot **ended) {
    int64_t less = 0;
    for (size_t i = 0; i < count; i++) lifetime_begin(&slots[i]->lifetime);
    counter_add(&name->served, (int64_t)count);
    counter_add(&table->served, (int64_t)count);
    counter_add_release(&name->changes, 1); /* between: see table_take */
    for (struct growing_node *node = growing_first(&name->slots); node != NULL; node = node->next) {
        struct model_slot *slot = slot_of(node);
        if (!slot->is_taken || slot->is_ended || is_among(slot, slots, count)) continue;
        (void)lifetime_end(&slot->lifetime); /* whoever is last wakes the keeper, who looks */
        slot->is_ended = true;
        slot->next_closing = *ended;
        *ended = slot;
        less++;
    }
    counter_add_release(&name->changes, 1); /* a walk that saw some of them ended and some not */
    counter_add(&name->served, -less);
    counter_add(&table->served, -less);
}

void table_vacate(struct model_slot *slot) {
    slot->model = NULL;
    slot->is_taken = slot->is_ended = false;
}

/* ---- states ---- */

struct version_state *table_state(struct model_name *name, uint64_t version) {
    struct version_state *state = name->versions;
    while (state != NULL && state->version != version) state = state->next;
    return state;
}

bool table_set_state(struct model_name *name, uint64_t version, enum model_state state,
                     const char *reason) {
    char *copy = reason != NULL && reason[0] != 0 ? strdup(reason) : NULL;
    struct version_state *entry = table_state(name, version);
    if (entry == NULL) {
        entry = calloc(1, sizeof *entry);
        if (entry == NULL) {
            free(copy);
            return false;
        }
        struct version_state **link = &name->versions;
        while (*link != NULL && (*link)->version < version) link = &(*link)->next;
        *entry = (struct version_state){.next = *link, .version = version};
        *link = entry;
    }
    free(entry->reason);
    entry->reason = copy;
    entry->state = state;
    return true;
}

/* ---- life cycle ---- */

void table_init(struct table *table) {
    *table = (struct table){.served = {0}};
    pthread_mutex_init(&table->lock, NULL);
}

static void free_name(struct model_name *name) {
    struct growing_node *node = growing_first(&name->slots);
    while (node != NULL) {
        struct model_slot *slot = slot_of(node);
        node = node->next;
        free(slot);
    }
    while (name->versions != NULL) {
        struct version_state *state = name->versions;
        name->versions = state->next;
        free(state->reason);
        free(state);
    }
    free(name->text);
    free(name);
}

void table_done(struct table *table) {
    struct model_name *name = table_first(table);
    while (name != NULL) {
        struct model_name *next = table_next(name);
        free_name(name);
        name = next;
    }
    pthread_mutex_destroy(&table->lock);
}
