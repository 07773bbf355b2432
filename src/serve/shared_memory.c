/* The table of registered regions. Any thread.
 *
 * Invariant: a region is open as long as somebody holds it: the table, or a copy under way. Bytes
 * go by pread and pwrite on its descriptor, so that whatever the owner does to the object meanwhile
 * is an error of one request.
 * Read next: shared_tensors.c (who copies what), control_shared.c (the routes). */
#include "serve/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct region {
    char name[SHARED_NAME_MAX + 1];
    char key[SHARED_NAME_MAX + 1];
    size_t name_size;
    uint64_t offset, byte_size;
    int fd;
    bool is_writable;
    unsigned holders; /* the table is one; under the lock */
};

struct shared_memory {
    pthread_mutex_t lock;
    struct region **regions; /* by name */
    size_t count, capacity;
    uint64_t max_regions;
};

struct shared_memory *shared_memory_create(uint64_t max_regions) {
    struct shared_memory *shared = calloc(1, sizeof *shared);
    if (!shared)
        return NULL;
    pthread_mutex_init(&shared->lock, NULL);
    shared->max_regions = max_regions;
    return shared;
}

bool shared_memory_is_on(const struct shared_memory *shared) {
    return shared->max_regions > 0;
}

static void close_region(struct region *region) {
    if (region->fd >= 0)
        (void)close(region->fd);
    free(region);
}

/* Under the lock. */
static void let_go(struct region *region) {
    if (--region->holders == 0)
        close_region(region);
}

void shared_memory_free(struct shared_memory *shared) {
    if (!shared)
        return;
    shared_memory_unregister(shared, (struct view){.data = ""});
    pthread_mutex_destroy(&shared->lock);
    free(shared->regions);
    free(shared);
}

/* ---- the table, under the lock ---- */

static int compare(const struct region *region, struct view name) {
    const size_t common = region->name_size < name.size ? region->name_size : name.size;
    const int order = memcmp(region->name, name.data, common);
    if (order != 0)
        return order;
    return region->name_size < name.size ? -1 : region->name_size > name.size;
}

/* Where name is, or belongs. */
static size_t place_of(const struct shared_memory *shared, struct view name, bool *out_found) {
    size_t low = 0;
    size_t high = shared->count;
    *out_found = false;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare(shared->regions[middle], name);
        if (order == 0) {
            *out_found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static enum status insert(struct shared_memory *shared, struct region *region, struct err *err) {
    bool is_there = false;
    const struct view name = {.data = region->name, .size = region->name_size};
    const size_t at = place_of(shared, name, &is_there);
    if (is_there)
        return err_set(err, ST_INVALID,
                       "shared memory region \"%s\" is registered already: unregister it first",
                       region->name);
    if (shared->count >= shared->max_regions)
        return err_set(err, ST_INVALID,
                       "%zu shared memory regions are registered, which is the limit: raise "
                       "--max-shared-regions", shared->count);
    if (shared->count == shared->capacity) {
        const size_t capacity = shared->capacity ? shared->capacity * 2 : 16;
        struct region **grown = realloc(shared->regions, capacity * sizeof(struct region *));
        if (!grown)
            return err_set(err, ST_NO_MEMORY, "no memory for another shared memory region");
        shared->regions = grown;
        shared->capacity = capacity;
    }
    memmove(shared->regions + at + 1, shared->regions + at,
            (shared->count - at) * sizeof(struct region *));
    shared->regions[at] = region;
    shared->count++;
    return ST_OK;
}

/* ---- registering ---- */

static bool has_control(struct view text) {
    for (size_t i = 0; i < text.size; i++)
        if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7f)
            return true;
    return false;
}

/* shm_open gives a key without slashes its own directory; anything else could name another. */
static enum status check_names(struct view name, struct view key, struct err *err) {
    if (name.size == 0 || name.size > SHARED_NAME_MAX || has_control(name))
        return err_set(err, ST_INVALID,
                       "a shared memory region's name has 1 to %d bytes and no control characters",
                       SHARED_NAME_MAX);
    struct view rest = key;
    while (rest.size > 0 && rest.data[0] == '/') {
        rest.data++;
        rest.size--;
    }
    if (rest.size == 0 || rest.size > SHARED_NAME_MAX - 1 || has_control(rest) ||
        memchr(rest.data, '/', rest.size) || view_is(rest, ".") || view_is(rest, ".."))
        return err_set(err, ST_INVALID,
                       "key \"%.*s\" is no name for a shared memory object: 1 to %d bytes after the "
                       "first slash, no further slash",
                       (int)(key.size < 60 ? key.size : 60), key.data, SHARED_NAME_MAX - 1);
    return ST_OK;
}

static enum status open_object(struct region *region, struct err *err) {
    region->is_writable = true;
    region->fd = shm_open(region->key, O_RDWR | O_CLOEXEC, 0);
    if (region->fd < 0 && errno == EACCES) { /* good enough for inputs */
        region->is_writable = false;
        region->fd = shm_open(region->key, O_RDONLY | O_CLOEXEC, 0);
    }
    if (region->fd < 0)
        return err_set(err, errno == ENOENT ? ST_NOT_FOUND : ST_INVALID,
                       "shared memory object \"%s\" cannot be opened: %s", region->key,
                       strerror(errno));
    struct stat info;
    if (fstat(region->fd, &info) != 0 || !S_ISREG(info.st_mode))
        return err_set(err, ST_INVALID, "\"%s\" is no shared memory object", region->key);
    const uint64_t size = (uint64_t)info.st_size;
    if (region->offset > size || region->byte_size > size - region->offset)
        return err_set(err, ST_INVALID,
                       "shared memory object \"%s\" has %llu bytes: offset %llu and byte_size %llu "
                       "go beyond them", region->key, (unsigned long long)size,
                       (unsigned long long)region->offset, (unsigned long long)region->byte_size);
    return ST_OK;
}

enum status shared_memory_register(struct shared_memory *shared, struct view name,
                                   struct view key, uint64_t offset, uint64_t byte_size,
                                   struct err *err) {
    if (!shared_memory_is_on(shared))
        return err_set(err, ST_UNSUPPORTED,
                       "shared memory is switched off here (--max-shared-regions 0)");
    enum status status = check_names(name, key, err);
    if (status == ST_OK && byte_size == 0)
        status = err_set(err, ST_INVALID, "byte_size of a shared memory region must be at least 1");
    if (status != ST_OK)
        return status;
    struct region *region = calloc(1, sizeof *region);
    if (!region)
        return err_set(err, ST_NO_MEMORY, "no memory for another shared memory region");
    while (key.size > 1 && key.data[0] == '/' && key.data[1] == '/') { /* as shm_open reads it */
        key.data++;
        key.size--;
    }
    memcpy(region->name, name.data, name.size);
    memcpy(region->key, key.data, key.size);
    region->name_size = name.size;
    region->offset = offset;
    region->byte_size = byte_size;
    region->holders = 1;
    status = open_object(region, err);
    if (status == ST_OK) {
        pthread_mutex_lock(&shared->lock);
        status = insert(shared, region, err);
        pthread_mutex_unlock(&shared->lock);
    }
    if (status != ST_OK)
        close_region(region);
    return status;
}

void shared_memory_unregister(struct shared_memory *shared, struct view name) {
    bool is_there = false;
    pthread_mutex_lock(&shared->lock);
    if (name.size == 0) {
        for (size_t i = 0; i < shared->count; i++)
            let_go(shared->regions[i]);
        shared->count = 0;
    } else {
        const size_t at = place_of(shared, name, &is_there);
        if (is_there) {
            let_go(shared->regions[at]);
            shared->count--;
            memmove(shared->regions + at, shared->regions + at + 1,
                    (shared->count - at) * sizeof(struct region *));
        }
    }
    pthread_mutex_unlock(&shared->lock);
}

/* ---- listing ---- */

static enum status unknown(struct view name, struct err *err) {
    return err_set(err, ST_NOT_FOUND, "no shared memory region \"%.*s\" is registered",
                   (int)(name.size < 100 ? name.size : 100), name.data);
}

static enum status list_all(const struct shared_memory *shared, struct view name,
                            struct arena *arena, struct shared_region **out, size_t *out_count,
                            struct err *err) {
    bool is_there = false;
    const size_t at = name.size ? place_of(shared, name, &is_there) : 0;
    if (name.size && !is_there)
        return unknown(name, err);
    const size_t count = name.size ? 1 : shared->count;
    struct shared_region *list = arena_array(arena, count + 1, sizeof *list);
    for (size_t i = 0; list && i < count; i++) {
        const struct region *region = shared->regions[at + i];
        const struct view own = {.data = region->name, .size = region->name_size};
        const char *copy = arena_copy(arena, own);
        const char *key = arena_copy(arena, view_of(region->key));
        if (!copy || !key)
            list = NULL;
        else
            list[i] = (struct shared_region){.name = {.data = copy, .size = own.size},
                                             .key = view_of(key),
                                             .offset = region->offset,
                                             .byte_size = region->byte_size};
    }
    if (!list)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu shared memory regions", count);
    *out = list;
    *out_count = count;
    return ST_OK;
}

enum status shared_memory_list(struct shared_memory *shared, struct view name, struct arena *arena,
                               struct shared_region **out, size_t *out_count, struct err *err) {
    pthread_mutex_lock(&shared->lock);
    const enum status status = list_all(shared, name, arena, out, out_count, err);
    pthread_mutex_unlock(&shared->lock);
    return status;
}

/* ---- copying ---- */

static void put_back(struct shared_memory *shared, struct region *region) {
    pthread_mutex_lock(&shared->lock);
    let_go(region);
    pthread_mutex_unlock(&shared->lock);
}

/* The region of a place that lies in it, held for the caller. */
static enum status hold(struct shared_memory *shared, const struct shared_place *place,
                        struct region **out, struct err *err) {
    bool is_there = false;
    pthread_mutex_lock(&shared->lock);
    const size_t at = place_of(shared, place->region, &is_there);
    struct region *region = is_there ? shared->regions[at] : NULL;
    if (region)
        region->holders++;
    pthread_mutex_unlock(&shared->lock);
    if (!region) {
        (void)unknown(place->region, err);
        return ST_INVALID; /* the request is wrong, the path is not */
    }
    if (place->offset <= region->byte_size && place->size <= region->byte_size - place->offset) {
        *out = region;
        return ST_OK;
    }
    const enum status status = err_set(
        err, ST_INVALID,
        "region \"%s\" has %llu bytes: offset %llu and byte size %llu go beyond them", region->name,
        (unsigned long long)region->byte_size, (unsigned long long)place->offset,
        (unsigned long long)place->size);
    put_back(shared, region);
    return status;
}

enum status shared_memory_check(struct shared_memory *shared, const struct shared_place *place,
                                struct err *err) {
    struct region *region = NULL;
    const enum status status = hold(shared, place, &region, err);
    if (status == ST_OK)
        put_back(shared, region);
    return status;
}

static enum status too_short(const struct region *region, struct err *err) {
    return err_set(err, ST_INVALID,
                   "region \"%s\": shared memory object \"%s\" has become smaller than it was when "
                   "the region was registered", region->name, region->key);
}

static enum status read_all(const struct region *region, uint64_t at, char *out, size_t size,
                            struct err *err) {
    while (size > 0) {
        const ssize_t got = pread(region->fd, out, size, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set(err, ST_INVALID, "region \"%s\" cannot be read: %s", region->name,
                           strerror(errno));
        if (got == 0)
            return too_short(region, err);
        out += got;
        at += (uint64_t)got;
        size -= (size_t)got;
    }
    return ST_OK;
}

enum status shared_memory_read(struct shared_memory *shared, const struct shared_place *place,
                               void *out, struct err *err) {
    struct region *region = NULL;
    enum status status = hold(shared, place, &region, err);
    if (status != ST_OK)
        return status;
    status = read_all(region, region->offset + place->offset, out, place->size, err);
    put_back(shared, region);
    return status;
}

static enum status write_all(const struct region *region, uint64_t at, const char *bytes,
                             size_t size, struct err *err) {
    struct stat info;
    if (!region->is_writable)
        return err_set(err, ST_INVALID, "region \"%s\": \"%s\" is not ours to write into",
                       region->name, region->key);
    /* pwrite would make it larger. */
    if (fstat(region->fd, &info) != 0 || (uint64_t)info.st_size < at + size)
        return too_short(region, err);
    while (size > 0) {
        const ssize_t put = pwrite(region->fd, bytes, size, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return err_set(err, ST_INVALID, "region \"%s\" cannot be written: %s", region->name,
                           strerror(errno));
        bytes += put;
        at += (uint64_t)put;
        size -= (size_t)put;
    }
    return ST_OK;
}

enum status shared_memory_write(struct shared_memory *shared, const struct shared_place *place,
                                const void *bytes, size_t size, struct err *err) {
    struct region *region = NULL;
    if (size > place->size)
        return err_set(err, ST_INVALID,
                       "region \"%.*s\": shared_memory_byte_size is %llu, the tensor has %zu bytes",
                       (int)(place->region.size < 100 ? place->region.size : 100),
                       place->region.data, (unsigned long long)place->size, size);
    enum status status = hold(shared, place, &region, err);
    if (status != ST_OK)
        return status;
    status = write_all(region, region->offset + place->offset, bytes, size, err);
    put_back(shared, region);
    return status;
}
