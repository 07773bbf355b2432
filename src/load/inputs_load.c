/* Reads what will be sent from files. Before the load, one thread. Invariant: every raw view
 * lives in the inputs' arena. Read next: inputs.c, which makes requests of them. */
#include "load/inputs.h"

#include "prep/image.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    INPUT_FILE_MAX = 1 << 30,
    INPUT_IMAGES_MAX = 1 << 30, /* bytes of all pictures: they are held, and over HTTP as bodies too */
    INPUT_RANDOM_COUNT = 64,
    INPUT_MAX_DEPTH = 16,
    LENGTH_SIZE = sizeof(uint32_t)
};

/* Before the bytes lies their length: a BYTES element. */
MUST_CHECK static enum status read_file(const char *path, struct arena *arena, struct view *out,
                                        struct err *err) {
    struct stat info; /* looked at first: opening a pipe would wait for its writer */
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return err_set(err, ST_INVALID, "%s is not a file", path);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return err_set(err, errno == ENOENT ? ST_NOT_FOUND : ST_IO, "cannot read %s: %s", path,
                       strerror(errno));
    enum status status = ST_OK;
    if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode)) {
        status = err_set(err, ST_INVALID, "%s is not a file", path);
        goto out;
    }
    if (info.st_size > INPUT_FILE_MAX) {
        status = err_set(err, ST_TOO_LARGE, "%s has %lld bytes; at most %d", path,
                         (long long)info.st_size, INPUT_FILE_MAX);
        goto out;
    }
    char *element = arena_alloc(arena, LENGTH_SIZE + (size_t)info.st_size + 1);
    if (element == NULL) {
        status = err_set(err, ST_NO_MEMORY, "out of memory for %s", path);
        goto out;
    }
    char *data = element + LENGTH_SIZE;
    size_t size = fread(data, 1, (size_t)info.st_size, file);
    if (ferror(file)) {
        status = err_set(err, ST_IO, "cannot read %s: %s", path, strerror(errno));
        goto out;
    }
    data[size] = 0;
    memcpy(element, &(uint32_t){(uint32_t)size}, LENGTH_SIZE);
    *out = (struct view){.data = data, .size = size};
out:
    fclose(file);
    return status;
}

struct raw_list {
    struct view *items;
    size_t count, capacity;
    bool is_images; /* only pictures are taken */
    size_t bytes;   /* of pictures */
};

MUST_CHECK static enum status raw_add(struct raw_list *list, struct view raw, struct err *err) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 256 : list->capacity * 2;
        struct view *items = realloc(list->items, capacity * sizeof *items);
        if (items == NULL) return err_set(err, ST_NO_MEMORY, "out of memory for the inputs");
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = raw;
    return ST_OK;
}

static bool is_blank(struct view text) {
    for (size_t i = 0; i < text.size; i++)
        if (strchr(" \t\r\n", text.data[i]) == NULL || text.data[i] == 0) return false;
    return true;
}

MUST_CHECK static enum status add_image(struct raw_list *list, const char *path,
                                        struct arena *arena, struct err *err) {
    struct view raw;
    enum status status = read_file(path, arena, &raw, err);
    if (status != ST_OK) return status;
    if (raw.size > INPUT_IMAGES_MAX - list->bytes)
        return err_set(err, ST_TOO_LARGE,
                       "with %s there would be more than %d MiB of pictures: give a directory with "
                       "fewer", path, INPUT_IMAGES_MAX >> 20);
    list->bytes += raw.size;
    return raw_add(list, raw, err);
}

/* Of a directory's files only those that start as a picture does: what lies beside them is not to
 * be held. */
MUST_CHECK static enum status add_if_image(struct raw_list *list, const char *path,
                                           struct arena *arena, struct err *err) {
    char start[16];
    FILE *file = fopen(path, "rb");
    if (file == NULL) return err_set(err, ST_IO, "cannot read %s: %s", path, strerror(errno));
    const size_t size = fread(start, 1, sizeof start, file);
    fclose(file);
    if (!image_is_known((struct view){.data = start, .size = size})) return ST_OK;
    return add_image(list, path, arena, err);
}

MUST_CHECK static enum status add_lines(struct raw_list *list, struct view text,
                                        struct err *err) {
    const char *at = text.data, *end = text.data + text.size;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL) stop = end;
        struct view line = {.data = at, .size = (size_t)(stop - at)};
        if (line.size > 0 && line.data[line.size - 1] == '\r') line.size--;
        if (!is_blank(line)) {
            enum status status = raw_add(list, line, err);
            if (status != ST_OK) return status;
        }
        at = stop + 1;
    }
    return ST_OK;
}

MUST_CHECK static enum status add_directory(struct raw_list *list, const char *path,
                                            unsigned depth, struct arena *arena,
                                            struct err *err);

MUST_CHECK static enum status add_entry(struct raw_list *list, const char *path, unsigned depth,
                                        struct arena *arena, struct err *err) {
    struct stat info;
    if (stat(path, &info) != 0) return ST_OK; /* a link to nowhere */
    if (S_ISDIR(info.st_mode)) return add_directory(list, path, depth + 1, arena, err);
    if (!S_ISREG(info.st_mode)) return ST_OK;
    if (list->is_images) return add_if_image(list, path, arena, err);
    struct view raw;
    enum status status = read_file(path, arena, &raw, err);
    return status != ST_OK || is_blank(raw) ? status : raw_add(list, raw, err);
}

/* Files of a directory and those below it, in the order of their names, so that a seed means the
 * same everywhere. */
MUST_CHECK static enum status add_directory(struct raw_list *list, const char *path,
                                            unsigned depth, struct arena *arena,
                                            struct err *err) {
    if (depth > INPUT_MAX_DEPTH)
        return err_set(err, ST_TOO_LARGE, "%s: directories nested too deep", path);
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, alphasort);
    if (count < 0) return err_set(err, ST_IO, "cannot read %s: %s", path, strerror(errno));
    enum status status = ST_OK;
    for (int i = 0; i < count; i++) {
        char file[4096];
        int size = snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        bool is_wanted = entries[i]->d_name[0] != '.' && size < (int)sizeof file;
        if (status == ST_OK && is_wanted) status = add_entry(list, file, depth, arena, err);
        free(entries[i]);
    }
    free(entries);
    return status;
}

MUST_CHECK static enum status load_texts(const char *path, struct raw_list *list,
                                         struct arena *arena, struct err *err) {
    struct stat info;
    if (stat(path, &info) != 0)
        return err_set(err, ST_NOT_FOUND, "--input text:%s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode)) return add_directory(list, path, 0, arena, err);
    struct view text;
    enum status status = read_file(path, arena, &text, err);
    return status != ST_OK ? status : add_lines(list, text, err);
}

MUST_CHECK static enum status load_images(const char *path, struct raw_list *list,
                                          struct arena *arena, struct err *err) {
    struct stat info;
    list->is_images = true;
    if (stat(path, &info) != 0)
        return err_set(err, ST_NOT_FOUND, "--input image:%s: %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode)) return add_image(list, path, arena, err);
    enum status status = add_directory(list, path, 0, arena, err);
    if (status != ST_OK || list->count > 0) return status;
    return err_set(err, ST_INVALID, "--input image:%s: no JPEG, PNG or WebP there", path);
}

/* One document over several lines, or JSON Lines: decided by whether the first line closes. */
MUST_CHECK static enum status load_bodies(const char *path, struct raw_list *list,
                                          struct arena *arena, struct err *err) {
    struct view text;
    enum status status = read_file(path, arena, &text, err);
    if (status != ST_OK) return status;
    const char *line_end = text.size == 0 ? NULL : memchr(text.data, '\n', text.size);
    size_t first = line_end == NULL ? text.size : (size_t)(line_end - text.data);
    while (first > 0 && strchr(" \t\r", text.data[first - 1]) != NULL) first--;
    if (first == 0 || text.data[first - 1] != '}') return raw_add(list, text, err);
    return add_lines(list, text, err);
}

static const char *const KIND_NAMES[] = {
    [INPUT_TEXT] = "text", [INPUT_IMAGE] = "image", [INPUT_JSON] = "json", [INPUT_RANDOM] = "random"};

const char *input_kind_name(enum input_kind kind) { return KIND_NAMES[kind]; }

MUST_CHECK static enum status parse_spec(const char *spec, enum input_kind *out_kind,
                                         const char **out_path, struct err *err) {
    *out_path = NULL;
    *out_kind = INPUT_RANDOM;
    if (spec == NULL || strcmp(spec, "random") == 0) return ST_OK;
    for (int kind = 0; kind < INPUT_RANDOM; kind++) {
        size_t size = strlen(KIND_NAMES[kind]);
        if (strncmp(spec, KIND_NAMES[kind], size) != 0 || spec[size] != ':') continue;
        if (spec[size + 1] == 0)
            return err_set(err, ST_INVALID, "--input %s: a path must follow the colon", spec);
        *out_kind = (enum input_kind)kind;
        *out_path = spec + size + 1;
        return ST_OK;
    }
    return err_set(err, ST_INVALID,
                   "--input %s: must be text:PATH, image:PATH, json:FILE or random", spec);
}

enum status inputs_load(const char *spec, struct inputs *out, struct err *err) {
    enum input_kind kind;
    const char *path;
    enum status status = parse_spec(spec, &kind, &path, err);
    if (status != ST_OK) return status;
    struct raw_list list = {0};
    struct inputs loaded = {.kind = kind, .source = spec == NULL ? "random" : spec};
    arena_init(&loaded.arena);
    if (kind == INPUT_TEXT) status = load_texts(path, &list, &loaded.arena, err);
    else if (kind == INPUT_IMAGE) status = load_images(path, &list, &loaded.arena, err);
    else if (kind == INPUT_JSON) status = load_bodies(path, &list, &loaded.arena, err);
    loaded.count = kind == INPUT_RANDOM ? INPUT_RANDOM_COUNT : list.count;
    if (status == ST_OK && loaded.count == 0)
        status = err_set(err, ST_INVALID, "--input %s: nothing there that could be sent", spec);
    if (status == ST_OK) {
        loaded.items = arena_array(&loaded.arena, loaded.count, sizeof *loaded.items);
        if (loaded.items == NULL)
            status = err_set(err, ST_NO_MEMORY, "out of memory for %zu inputs", loaded.count);
    }
    for (size_t i = 0; status == ST_OK && i < list.count; i++) loaded.items[i].raw = list.items[i];
    free(list.items);
    if (status != ST_OK) arena_done(&loaded.arena);
    else *out = loaded;
    return status;
}
