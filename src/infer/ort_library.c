/* Finds and loads ONNX Runtime at run time: no link-time dependency, so that a user can name
 * another build (one with CUDA, say), and so that simulation and diagnosis need none.
 *
 * Any thread. Invariant: one library and one environment a process (ONNX Runtime allows no
 * more), never unloaded: its threads and static destructors may outlive any session. That is
 * why this is the one mutable static of the folder. Order of the search: the path given; else
 * $TELLTALE_ONNXRUNTIME; else beside the executable as installed, then as built in the source
 * tree; else the system's. Read next: ort_session.c. */
#include "infer/ort_api.h"
#include "infer/ort_message.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#else
#define MULTIARCH "."
#endif

/* Relative to the executable's directory; the last two are the source tree's, from build/ and
 * from build/KIND/. */
static const char *const BESIDE[] = {
    "../lib/telltale", "../lib/" MULTIARCH "/telltale", "../.deps/onnxruntime/lib",
    "../../.deps/onnxruntime/lib",
};
static const char *const FILES[] = {"libonnxruntime.so.1", "libonnxruntime.so"};
enum { FILE_COUNT = 2 };

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ort_library *loaded; /* written once, under load_lock */

struct candidate {
    char path[512];
    void *handle; /* NULL: nothing opened */
};

/* Opens path. An existing file that does not load is an error worth more than trying on. */
static enum status file_open(struct candidate *candidate, const char *path, struct err *err) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        return err_set(err, ST_UNAVAILABLE, "cannot load ONNX Runtime: %s", dlerror());
    }
    snprintf(candidate->path, sizeof candidate->path, "%s", path);
    candidate->handle = handle;
    return ST_OK;
}

/* A directory stands for the library in it. Leaves handle NULL when there is none. */
static enum status directory_open(struct candidate *candidate, const char *directory,
                                  struct err *err) {
    for (size_t i = 0; i < FILE_COUNT; i++) {
        char path[512];
        const int n = snprintf(path, sizeof path, "%s/%s", directory, FILES[i]);
        if (n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0) {
            return file_open(candidate, path, err);
        }
    }
    return ST_OK;
}

/* Beside the library or program that this code is in, as installed: for C programs that embed it. */
static enum status installed_open(struct candidate *candidate, struct err *err) {
    Dl_info info;
    char directory[480];
    if (dladdr((const void *)FILES, &info) == 0 || info.dli_fname == NULL) return ST_OK;
    const char *slash = strrchr(info.dli_fname, '/');
    if (!slash) return ST_OK;
    snprintf(directory, sizeof directory, "%.*s/telltale", (int)(slash - info.dli_fname),
             info.dli_fname);
    return directory_open(candidate, directory, err);
}

static enum status named_open(struct candidate *candidate, const char *path, const char *source,
                              struct err *err) {
    struct stat info;
    enum status status = ST_OK;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        status = directory_open(candidate, path, err);
        if (status == ST_OK && !candidate->handle) {
            status = err_set(err, ST_UNAVAILABLE, "no %s in %s", FILES[0], path);
        }
    } else {
        status = file_open(candidate, path, err);
    }
    if (status != ST_OK) {
        err_prefix(err, "%s", source);
    }
    return status;
}

static enum status search(struct candidate *candidate, struct err *err) {
    char executable[400];
    const enum status beside = installed_open(candidate, err);
    if (beside != ST_OK || candidate->handle) return beside;
    const ssize_t size = readlink("/proc/self/exe", executable, sizeof executable - 1);
    executable[size > 0 ? size : 0] = '\0';
    char *slash = strrchr(executable, '/');
    for (size_t i = 0; slash && i < sizeof BESIDE / sizeof BESIDE[0]; i++) {
        char directory[480];
        *slash = '\0';
        snprintf(directory, sizeof directory, "%s/%s", executable, BESIDE[i]);
        const enum status status = directory_open(candidate, directory, err);
        if (status != ST_OK || candidate->handle) {
            return status;
        }
    }
    for (size_t i = 0; i < FILE_COUNT; i++) {
        if (file_open(candidate, FILES[i], NULL) == ST_OK) {
            return ST_OK;
        }
    }
    return err_set(err, ST_UNAVAILABLE,
                   "ONNX Runtime's library not found: tried %s in %s/{%s, %s, %s, %s} and the "
                   "system's library path; name it with --onnxruntime FILE or "
                   "TELLTALE_ONNXRUNTIME=FILE (--simulate needs none)",
                   FILES[0], executable, BESIDE[0], BESIDE[1], BESIDE[2], BESIDE[3]);
}

static enum status library_fill(struct ort_library *library, const struct candidate *candidate,
                                struct err *err) {
    snprintf(library->path, sizeof library->path, "%s", candidate->path);
    const OrtApiBase *(*entry)(void) = NULL;
    void *symbol = dlsym(candidate->handle, "OrtGetApiBase");
    memcpy(&entry, &symbol, sizeof entry); /* C has no cast from object to function pointer */
    library->base = entry ? entry() : NULL;
    if (!library->base) {
        return err_set(err, ST_UNAVAILABLE, "%s is not ONNX Runtime: it has no OrtGetApiBase",
                       library->path);
    }
    snprintf(library->version, sizeof library->version, "%s", library->base->GetVersionString());
    library->api = library->base->GetApi(ORT_API_NEEDED);
    if (!library->api) {
        return err_set(err, ST_UNAVAILABLE, "%s is ONNX Runtime %s: 1.%d or newer is needed",
                       library->path, library->version, ORT_API_NEEDED);
    }
    /* Its warnings are about graph details and devices that are not there; what fails comes
     * back as a status and is told once by whoever handles it. */
    OrtStatus *failed = library->api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "telltale", &library->env);
    if (!failed) {
        failed = library->api->DisableTelemetryEvents(library->env); /* older than the variable */
    }
    if (!failed) {
        failed = library->api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault,
                                                   &library->cpu_memory);
    }
    if (!failed) {
        failed = library->api->GetAllocatorWithDefaultOptions(&library->allocator);
    }
    return failed ? ort_fail(library, failed, err, "starting ONNX Runtime") : ST_OK;
}

static void library_discard(struct ort_library *library) {
    if (library->cpu_memory) {
        library->api->ReleaseMemoryInfo(library->cpu_memory);
    }
    if (library->env) {
        library->api->ReleaseEnv(library->env);
    }
    free(library);
}

static enum status library_load(const char *path, struct ort_library **out, struct err *err) {
    struct candidate candidate = {.handle = NULL};
    /* Since 1.29 the published Linux builds send usage events to their maker and keep a database
     * of them under ~/.cache, from a thread that starts with the environment. A server does not
     * do that unasked; ORT_DISABLE_TELEMETRY=0 in the environment asks. Set before the library
     * is loaded, since it reads the variable once. */
    setenv("ORT_DISABLE_TELEMETRY", "1", 0);
    const char *from_environment = getenv("TELLTALE_ONNXRUNTIME");
    enum status status;
    if (path) {
        status = named_open(&candidate, path, "--onnxruntime", err);
    } else if (from_environment && *from_environment) {
        status = named_open(&candidate, from_environment, "TELLTALE_ONNXRUNTIME", err);
    } else {
        status = search(&candidate, err);
    }
    if (status != ST_OK) {
        return status;
    }
    struct ort_library *library = calloc(1, sizeof *library);
    status = library ? library_fill(library, &candidate, err)
                     : err_set(err, ST_NO_MEMORY, "out of memory loading ONNX Runtime");
    if (status != ST_OK) {
        if (library) {
            library_discard(library);
        }
        dlclose(candidate.handle);
        return status;
    }
    snprintf(library->requested, sizeof library->requested, "%s", path ? path : "");
    *out = library;
    return ST_OK;
}

enum status ort_library_get(const char *path, const struct ort_library **out, struct err *err) {
    enum status status = ST_OK;
    pthread_mutex_lock(&load_lock);
    if (!loaded) {
        status = library_load(path, &loaded, err);
    } else if (path && strcmp(path, loaded->path) != 0 && strcmp(path, loaded->requested) != 0) {
        status = err_set(err, ST_INVALID,
                         "ONNX Runtime is loaded from %s already, and a process can have only "
                         "one: cannot load %s", loaded->path, path);
    }
    if (status == ST_OK) {
        *out = loaded;
    }
    pthread_mutex_unlock(&load_lock);
    return status;
}

enum status ort_fail(const struct ort_library *library, OrtStatus *ort_status, struct err *err,
                     const char *doing) {
    const char *text = library->api->GetErrorMessage(ort_status);
    const bool is_invalid = library->api->GetErrorCode(ort_status) == ORT_INVALID_ARGUMENT;
    const enum status status = ort_message_status(text, is_invalid);
    char message[320];
    err_set(err, status, "%s: %s", doing, ort_message_shorten(text, message, sizeof message));
    library->api->ReleaseStatus(ort_status);
    return status;
}
