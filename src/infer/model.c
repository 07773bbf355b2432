/* A model as it is served: files found, then opened by a back end.
 *
 * The loader's thread. Invariant: every string is the model's own, so model_free can take a
 * half-built one. Read next: repository.c, which finds many; backend.h. */
#include "infer/model.h"

#include "infer/model_files.h"
#include "infer/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool version_parse(const char *text, unsigned long long *out_version) {
    const size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 18 || text[digits] != '\0' || text[0] == '0') {
        return false;
    }
    *out_version = strtoull(text, NULL, 10);
    return true;
}

char *path_join(const char *directory, const char *name) {
    char *path = NULL;
    const size_t size = strlen(directory);
    const char *slash = size > 0 && directory[size - 1] == '/' ? "" : "/";
    return asprintf(&path, "%s%s%s", directory, slash, name) < 0 ? NULL : path;
}

/* "a/b/c" gives "a/b", "c" gives ".", "/c" gives "/". */
static char *path_parent(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) {
        return strdup(".");
    }
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

static const char *path_last(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool is_regular_file(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* name in directory, else in second (NULL allowed). *out_path stays NULL when in neither. False
 * when memory is out. */
static bool beside_find(const char *directory, const char *second, const char *name,
                        char **out_path) {
    const char *const places[] = {directory, second};
    for (size_t i = 0; i < 2 && places[i] && !*out_path; i++) {
        char *path = path_join(places[i], name);
        if (!path) {
            return false;
        }
        if (is_regular_file(path)) {
            *out_path = path;
        } else {
            free(path);
        }
    }
    return true;
}

enum status model_create(const struct model_place *place, const char *name, const char *version,
                         struct model **out, struct err *err) {
    struct model *model = calloc(1, sizeof *model);
    if (!model) {
        return err_set(err, ST_NO_MEMORY, "out of memory for model %s", name);
    }
    model->name = strdup(name);
    model->version = strdup(version);
    model->sha256 = strdup("");
    bool has_memory = model->name && model->version && model->sha256;
    if (place->path) {
        model->path = strdup(place->path);
        const char *directory = place->directory, *parent = place->parent;
        has_memory = has_memory && model->path &&
                     beside_find(directory, parent, "tokenizer.json", &model->tokenizer_path) &&
                     beside_find(directory, parent, "labels.txt", &model->labels_path) &&
                     beside_find(directory, parent, "pipeline.yaml", &model->pipeline_path);
    }
    if (!has_memory) {
        model_free(model);
        return err_set(err, ST_NO_MEMORY, "out of memory for model %s", name);
    }
    *out = model;
    return ST_OK;
}

/* The name and version that DIR/name/1/model.onnx says; both stay NULL for any other layout.
 * False when memory is out. */
static bool layout_read(const char *path, char **out_name, char **out_version) {
    unsigned long long number = 0;
    char *version_path = path_parent(path);
    char *name_path = version_path ? path_parent(version_path) : NULL;
    bool has_memory = name_path != NULL;
    if (has_memory && strcmp(path_last(path), "model.onnx") == 0 &&
        version_parse(path_last(version_path), &number)) {
        /* "1/model.onnx": the name is that of the working directory. */
        char *real = realpath(name_path, NULL);
        has_memory = real || errno != ENOMEM;
        const char *name = real ? path_last(real) : "";
        if (*name) {
            *out_name = strdup(name);
            *out_version = strdup(path_last(version_path));
            has_memory = *out_name && *out_version;
        }
        free(real);
    }
    free(name_path);
    free(version_path);
    return has_memory;
}

static char *file_stem(const char *path) {
    const char *name = path_last(path);
    const char *dot = strrchr(name, '.');
    return dot && dot > name ? strndup(name, (size_t)(dot - name)) : strdup(name);
}

enum status model_from_file(const char *path, const char *name_or_null, struct model **out,
                            struct err *err) {
    struct stat info;
    if (stat(path, &info) != 0) {
        return err_set(err, errno == ENOENT ? ST_NOT_FOUND : ST_IO, "model %s: %s", path,
                       strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return err_set(err, ST_INVALID,
                       "model %s is not a file: a directory of models is a --model-repository",
                       path);
    }
    char *name = NULL, *version = NULL;
    bool has_memory = layout_read(path, &name, &version);
    const bool is_layout = name != NULL;
    if (has_memory && !is_layout) {
        name = file_stem(path);
        has_memory = name != NULL;
    }
    char *directory = has_memory ? path_parent(path) : NULL;
    char *parent = directory && is_layout ? path_parent(directory) : NULL;
    has_memory = directory && (parent || !is_layout);
    const struct model_place place = {.path = path, .directory = directory, .parent = parent};
    const enum status status =
        has_memory ? model_create(&place, name_or_null ? name_or_null : name,
                                  is_layout ? version : "1", out, err)
                   : err_set(err, ST_NO_MEMORY, "out of memory for model %s", path);
    free(directory);
    free(parent);
    free(name);
    free(version);
    return status;
}

enum status model_simulated(const char *name_or_null, struct model **out, struct err *err) {
    const struct model_place nowhere = {.path = NULL};
    return model_create(&nowhere, name_or_null ? name_or_null : "simulated", "1", out, err);
}

enum status model_open(struct model *model, const struct backend *backend,
                       const struct session_config *config, struct err *err) {
    struct session_config own = *config;
    own.model_path = model->path;
    own.simulate_text = config->simulate_text || model->tokenizer_path;
    if (model->path) {
        char hex[SHA256_HEX_SIZE];
        const enum status status = sha256_file(model->path, hex, err);
        char *copy = status == ST_OK ? strdup(hex) : NULL;
        if (!copy) {
            return status != ST_OK
                       ? status
                       : err_set(err, ST_NO_MEMORY, "out of memory for model %s", model->name);
        }
        free(model->sha256);
        model->sha256 = copy;
    }
    struct session *session = NULL;
    const enum status status = backend->session_open(&own, &session, err);
    if (status != ST_OK) {
        err_prefix(err, "model %s", model->name);
        return status;
    }
    if (model->session) {
        model->backend->session_close(model->session);
    }
    model->backend = backend;
    model->session = session;
    model->signature = backend->signature(session);
    model->can_batch = signature_can_batch(model->signature);
    if (model->path && !backend->is_simulated) {
        model->weights = weights_of_file(model->path);
    }
    return ST_OK;
}

void model_free(struct model *model) {
    if (!model) {
        return;
    }
    if (model->session) {
        model->backend->session_close(model->session);
    }
    free(model->name);
    free(model->version);
    free(model->path);
    free(model->tokenizer_path);
    free(model->labels_path);
    free(model->pipeline_path);
    free(model->sha256);
    free(model);
}
