/* The floor of perf/startup: ONNX Runtime and one session, nothing of ours.
 *
 *     perf_bare_runtime LIBRARY MODEL
 *
 * Loads the library, opens MODEL on one thread without spinning, prints "ready", and waits for the end
 * of standard input. */
#include <onnxruntime_c_api.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { API_NEEDED = 15 };

static const OrtApi *api;

static void check(OrtStatus *failed) {
    if (failed != NULL) {
        fprintf(stderr, "perf_bare_runtime: %s\n", api->GetErrorMessage(failed));
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: perf_bare_runtime LIBRARY MODEL\n");
        return 2;
    }
    setenv("ORT_DISABLE_TELEMETRY", "1", 1);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    const OrtApiBase *(*get_base)(void) = NULL;
    if (library != NULL) *(void **)&get_base = dlsym(library, "OrtGetApiBase");
    if (get_base == NULL) {
        fprintf(stderr, "perf_bare_runtime: %s\n", dlerror());
        return 1;
    }
    api = get_base()->GetApi(API_NEEDED);
    if (api == NULL) {
        fprintf(stderr, "perf_bare_runtime: this ONNX Runtime is too old\n");
        return 1;
    }
    OrtEnv *env;
    OrtSessionOptions *options;
    OrtSession *session;
    check(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "bare", &env));
    check(api->CreateSessionOptions(&options));
    check(api->SetIntraOpNumThreads(options, 1));
    check(api->AddSessionConfigEntry(options, "session.intra_op.allow_spinning", "0"));
    check(api->CreateSession(env, argv[2], options, &session));
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    api->ReleaseSession(session);
    api->ReleaseSessionOptions(options);
    api->ReleaseEnv(env);
    return 0;
}
