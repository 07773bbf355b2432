/* Finds the models of a repository: DIR/<name>/<version>/model.onnx, Triton's layout.
 *
 * The loader's thread. Invariant: the scan opens no model and either lists all of them, by name,
 * or fails naming every directory that has none; half a repository is never served in silence.
 * Read next: model.c. */
#include "infer/model_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_directory(const char *path) {
    struct stat info; /* follows links: mounted volumes are full of them */
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The highest version of the model in directory that holds model.onnx: its path (the caller's
 * to free) and its version's text. ST_NOT_FOUND, without a text, when there is none. */
static enum status version_find(const char *directory, char **out_path, char out_version[24],
                                struct err *err) {
    DIR *stream = opendir(directory);
    if (!stream) {
        return err_set(err, ST_IO, "%s: %s", directory, strerror(errno));
    }
    unsigned long long best = 0;
    char *best_path = NULL;
    enum status status = ST_OK;
    for (const struct dirent *entry; status == ST_OK && (entry = readdir(stream)) != NULL;) {
        unsigned long long version = 0;
        if (!version_parse(entry->d_name, &version) || version <= best) {
            continue;
        }
        char name[48];
        snprintf(name, sizeof name, "%llu/model.onnx", version);
        char *path = path_join(directory, name);
        if (!path) {
            status = err_set(err, ST_NO_MEMORY, "out of memory scanning %s", directory);
        } else if (is_regular_file(path)) {
            free(best_path);
            best_path = path;
            best = version;
        } else {
            free(path);
        }
    }
    closedir(stream);
    if (status != ST_OK || !best_path) {
        free(best_path);
        return status != ST_OK ? status : ST_NOT_FOUND;
    }
    snprintf(out_version, 24, "%llu", best);
    *out_path = best_path;
    return ST_OK;
}

static enum status model_find(const char *repository, const char *name, struct model **out,
                              struct err *err) {
    char *directory = path_join(repository, name);
    if (!directory) {
        return err_set(err, ST_NO_MEMORY, "out of memory scanning %s", repository);
    }
    char *path = NULL;
    char version[24];
    enum status status = version_find(directory, &path, version, err);
    if (status == ST_OK) {
        status = model_create(path, name, version, true, out, err);
    }
    free(path);
    free(directory);
    return status;
}

/* Names of the directories in repository, sorted; freed by names_free. */
struct names {
    char **items;
    size_t count;
};

static void names_free(struct names *names) {
    for (size_t i = 0; i < names->count; i++) {
        free(names->items[i]);
    }
    free(names->items);
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

static enum status names_list(const char *repository, struct names *names, struct err *err) {
    DIR *stream = opendir(repository);
    if (!stream) {
        return err_set(err, errno == ENOENT ? ST_NOT_FOUND : ST_IO, "model repository %s: %s",
                       repository, strerror(errno));
    }
    bool has_memory = true;
    for (const struct dirent *entry; has_memory && (entry = readdir(stream)) != NULL;) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char *path = path_join(repository, entry->d_name);
        has_memory = path && (!is_directory(path) || names_add(names, entry->d_name));
        free(path);
    }
    closedir(stream);
    if (!has_memory) {
        return err_set(err, ST_NO_MEMORY, "out of memory scanning %s", repository);
    }
    if (names->count > 0) {
        qsort(names->items, names->count, sizeof *names->items, names_compare);
    }
    return ST_OK;
}

/* Finds every named model. Those without one are collected into one error. */
static enum status models_find(const char *repository, const struct names *names,
                               struct model **models, size_t *out_count, struct err *err) {
    char missing[300] = "";
    size_t missing_size = 0, missing_count = 0;
    for (size_t i = 0; i < names->count; i++) {
        const enum status status =
            model_find(repository, names->items[i], &models[*out_count], err);
        if (status == ST_OK) {
            ++*out_count;
            continue;
        }
        if (status != ST_NOT_FOUND) {
            return status;
        }
        missing_count++;
        if (missing_size < sizeof missing - 1) {
            const int n = snprintf(missing + missing_size, sizeof missing - missing_size, "%s%s",
                                   missing_size > 0 ? ", " : "", names->items[i]);
            missing_size += n > 0 ? (size_t)n : 0;
        }
    }
    if (missing_count == 0) {
        return ST_OK;
    }
    return err_set(err, ST_INVALID,
                   "model repository %s: no <number>/model.onnx in %zu of %zu directories: %s",
                   repository, missing_count, names->count, missing);
}

enum status repository_scan(const char *directory, struct model ***out_models,
                            size_t *out_count, struct err *err) {
    struct names names = {0};
    enum status status = names_list(directory, &names, err);
    if (status == ST_OK && names.count == 0) {
        status = err_set(err, ST_INVALID,
                         "model repository %s holds no models: want NAME/VERSION/model.onnx in it",
                         directory);
    }
    size_t count = 0;
    struct model **models = NULL;
    if (status == ST_OK) {
        models = calloc(names.count + 1, sizeof(struct model *));
        status = models ? models_find(directory, &names, models, &count, err)
                        : err_set(err, ST_NO_MEMORY, "out of memory scanning %s", directory);
    }
    names_free(&names);
    if (status != ST_OK) {
        for (size_t i = 0; i < count; i++) {
            model_free(models[i]);
        }
        free(models);
        return status;
    }
    *out_models = models;
    *out_count = count;
    return ST_OK;
}
