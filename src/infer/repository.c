/* Finds the models of a repository: see repository.h.
 *
 * A loader's thread. Invariant: what is found is described by its names alone; no file but a
 * directory is opened. Read next: model.c. */
#include "infer/repository.h"

#include "infer/model_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- names ---- */

void names_free(struct names *names) {
    for (size_t i = 0; i < names->count; i++) {
        free(names->items[i]);
    }
    free(names->items);
    *names = (struct names){.items = NULL};
}

bool model_name_is_valid(struct view name) {
    enum { LONGEST = 255 }; /* of a file system's names */
    if (name.size == 0 || name.size > LONGEST || name.data[0] == '.') {
        return false;
    }
    for (size_t i = 0; i < name.size; i++) {
        const unsigned char c = (unsigned char)name.data[i];
        if (c < 0x20 || c == 0x7f || c == '/') {
            return false;
        }
    }
    return true;
}

static bool names_add(struct names *names, const char *name) {
    char **items = realloc(names->items, (names->count + 1) * sizeof *items);
    if (!items) {
        return false;
    }
    names->items = items;
    items[names->count] = strdup(name);
    return items[names->count] && ++names->count;
}

static int names_compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_directory(const char *path) {
    struct stat info; /* follows links: mounted volumes are full of them */
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* What is in a directory, sorted; only_directories: and is one itself. */
static enum status entries_list(const char *directory, bool only_directories, struct names *out,
                                struct err *err) {
    DIR *stream = opendir(directory);
    if (!stream) {
        return err_set(err, errno == ENOENT ? ST_NOT_FOUND : ST_IO, "model repository %s: %s",
                       directory, strerror(errno));
    }
    struct names names = {.items = NULL};
    bool has_memory = true;
    for (const struct dirent *entry; has_memory && (entry = readdir(stream)) != NULL;) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char *path = path_join(directory, entry->d_name);
        has_memory = path && ((only_directories && !is_directory(path)) ||
                              names_add(&names, entry->d_name));
        free(path);
    }
    closedir(stream);
    if (!has_memory) {
        names_free(&names);
        return err_set(err, ST_NO_MEMORY, "out of memory scanning %s", directory);
    }
    if (names.count > 0) {
        qsort(names.items, names.count, sizeof *names.items, names_compare);
    }
    *out = names;
    return ST_OK;
}

enum status repository_names(const char *repository, struct names *out, struct err *err) {
    return entries_list(repository, true, out, err);
}

bool repository_has(const char *repository, const char *name) {
    char *path = path_join(repository, name);
    const bool has = path && is_directory(path);
    free(path);
    return has;
}

/* ---- versions ---- */

void versions_free(struct versions *versions) {
    free(versions->items);
    *versions = (struct versions){.items = NULL};
}

static int versions_compare(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right ? 1 : 0;
}

enum status repository_versions(const char *repository, const char *name, struct versions *out,
                                struct err *err) {
    char *directory = path_join(repository, name);
    struct names names = {.items = NULL};
    enum status status = directory ? entries_list(directory, true, &names, err)
                                   : err_set(err, ST_NO_MEMORY, "out of memory for model %s", name);
    free(directory);
    if (status != ST_OK) {
        return status;
    }
    struct versions versions = {.items = calloc(names.count + 1, sizeof(uint64_t))};
    if (!versions.items) {
        names_free(&names);
        return err_set(err, ST_NO_MEMORY, "out of memory for model %s", name);
    }
    for (size_t i = 0; i < names.count; i++) {
        unsigned long long version = 0;
        if (version_parse(names.items[i], &version)) {
            versions.items[versions.count++] = version;
        }
    }
    names_free(&names);
    qsort(versions.items, versions.count, sizeof *versions.items, versions_compare);
    *out = versions;
    return ST_OK;
}

/* The file in a version's directory, or that in the directory of its name. *out stays NULL where
 * there is none; false when memory is out. */
static bool file_find(const char *directory, const char *file_name, char **out) {
    char *path = path_join(directory, file_name);
    if (!path) {
        return false;
    }
    if (is_directory(path)) {
        char *inner = path_join(path, file_name);
        free(path);
        if (!inner) {
            return false;
        }
        path = inner;
    }
    if (is_regular_file(path)) {
        *out = path;
    } else {
        free(path);
    }
    return true;
}

enum status model_in_repository(const char *repository, const char *name, uint64_t version,
                                const char *file_name, struct model **out, struct err *err) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)version);
    const char *file = file_name ? file_name : "model.onnx";
    char *parent = path_join(repository, name);
    char *directory = parent ? path_join(parent, text) : NULL;
    char *path = NULL;
    enum status status;
    if (!directory || !file_find(directory, file, &path)) {
        status = err_set(err, ST_NO_MEMORY, "out of memory for model %s", name);
    } else if (!path) {
        status = err_set(err, ST_NOT_FOUND, "model %s: version %s has no %s", name, text, file);
    } else {
        const struct model_place place = {.path = path, .directory = directory, .parent = parent};
        status = model_create(&place, name, text, out, err);
    }
    free(path);
    free(directory);
    free(parent);
    return status;
}

/* ---- has anything changed? ---- */

static uint64_t mix(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *at = bytes; /* FNV-1a */
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ at[i]) * 0x100000001b3;
    }
    return hash;
}

static enum status stamp_tree(const char *directory, int depth, uint64_t *hash, struct err *err) {
    enum { DEEPEST = 8 }; /* a link to a directory above would go on for ever */
    struct names names = {.items = NULL};
    enum status status = entries_list(directory, false, &names, err);
    for (size_t i = 0; status == ST_OK && i < names.count; i++) {
        char *path = path_join(directory, names.items[i]);
        if (!path) {
            status = err_set(err, ST_NO_MEMORY, "out of memory scanning %s", directory);
            break;
        }
        struct stat info;
        *hash = mix(*hash, names.items[i], strlen(names.items[i]) + 1);
        if (stat(path, &info) != 0) {
            *hash = mix(*hash, "gone", 4); /* between the listing and now, or a dangling link */
        } else if (S_ISDIR(info.st_mode)) {
            if (depth < DEEPEST) {
                status = stamp_tree(path, depth + 1, hash, err);
            }
        } else {
            const uint64_t facts[] = {(uint64_t)info.st_size, (uint64_t)info.st_mtim.tv_sec,
                                      (uint64_t)info.st_mtim.tv_nsec, (uint64_t)info.st_ino};
            *hash = mix(*hash, facts, sizeof facts);
        }
        free(path);
    }
    names_free(&names);
    return status;
}

enum status repository_stamp(const char *repository, const char *name, uint64_t *out_stamp,
                             struct err *err) {
    char *directory = path_join(repository, name);
    uint64_t hash = 0xcbf29ce484222325;
    const enum status status =
        directory ? stamp_tree(directory, 0, &hash, err)
                  : err_set(err, ST_NO_MEMORY, "out of memory for model %s", name);
    free(directory);
    if (status == ST_OK) {
        *out_stamp = hash;
    }
    return status;
}
