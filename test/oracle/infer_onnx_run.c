/* Runs models with ONNX Runtime's C interface and nothing of ours: what scripts/check_onnx compares
 * the server's answers with, and what decides which models ONNX Runtime can run at all.
 *
 *     oracle_infer_onnx_run LIBRARY      then lines on standard input:
 *     MODEL <tab> INPUTS <tab> OUTPUTS <tab> RUNS     three paths and a number (the outputs are
 *                                        the last run's); one line is answered a line:
 *
 * "ok" (OUTPUTS is written), "load SENTENCE", "type SENTENCE" (an input or output is no tensor, or
 * of a type without a name in the protocol; it was not run) or "run SENTENCE". INPUTS and OUTPUTS
 * are, little endian: u32 count; each u32 length, name, u32 type (ONNX's number), u32 rank,
 * i64 dims, u64 size, bytes (strings: each a u32 length and its bytes).
 *
 * One thread. Invariant: memory is freed model by model; what cannot be allocated ends it. */
#include <onnxruntime_c_api.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IO = 512, MAX_RANK = 64, API_NEEDED = 15 };

struct blob {
    char *bytes;
    size_t size, at;
};

struct oracle {
    const OrtApi *api;
    OrtEnv *env;
    OrtAllocator *allocator;
};

struct run {
    OrtSession *session;
    char *names[2][MAX_IO]; /* inputs, outputs; ONNX Runtime's */
    size_t counts[2];
    OrtValue *inputs[MAX_IO], *outputs[MAX_IO];
    struct blob given;
};

static void *need(void *memory) {
    if (!memory) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

/* Prints "kind sentence" on one line; true when there was an error. */
static bool answer_failed(const struct oracle *o, const char *kind, OrtStatus *failed) {
    if (!failed)
        return false;
    printf("%s ", kind);
    for (const char *c = o->api->GetErrorMessage(failed); *c; c++)
        putchar((unsigned char)*c < ' ' ? ' ' : *c);
    putchar('\n');
    o->api->ReleaseStatus(failed);
    return true;
}

static size_t element_size(ONNXTensorElementDataType type) {
    switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8: return 1;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16: return 2;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: return 4;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: return 8;
    default: return 0; /* strings, and what the protocol has no name for */
    }
}

static bool file_read(const char *path, struct blob *out) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    bool is_read = fseek(file, 0, SEEK_END) == 0;
    const long size = is_read ? ftell(file) : -1;
    rewind(file);
    *out = (struct blob){.bytes = need(malloc(size > 0 ? (size_t)size : 1)), .size = (size_t)size};
    is_read = size >= 0 && fread(out->bytes, 1, out->size, file) == out->size;
    fclose(file);
    return is_read;
}

/* The next bytes of the file that the script wrote; it is trusted, a short one is a fault. */
static const char *take(struct blob *blob, size_t size) {
    if (size > blob->size - blob->at) {
        fprintf(stderr, "an input file ends too early\n");
        exit(1);
    }
    const char *from = blob->bytes + blob->at;
    blob->at += size;
    return from;
}

static uint32_t take_u32(struct blob *blob) {
    uint32_t value;
    memcpy(&value, take(blob, sizeof value), sizeof value);
    return value;
}

static OrtStatus *strings_fill(const struct oracle *o, OrtValue *value, const char *at, size_t size) {
    const char *const end = at + size;
    for (size_t i = 0; at < end; i++) {
        uint32_t length;
        char *to = NULL;
        memcpy(&length, at, sizeof length);
        OrtStatus *failed = o->api->GetResizedStringTensorElementBuffer(value, i, length, &to);
        if (failed)
            return failed;
        if (length > 0)
            memcpy(to, at + sizeof length, length);
        at += sizeof length + length;
    }
    return NULL;
}

static OrtStatus *tensor_read(const struct oracle *o, struct blob *blob, OrtValue **out) {
    const ONNXTensorElementDataType type = (ONNXTensorElementDataType)take_u32(blob);
    const uint32_t rank = take_u32(blob);
    int64_t dims[MAX_RANK];
    uint64_t size;
    void *data = NULL;
    if (rank > MAX_RANK)
        return o->api->CreateStatus(ORT_INVALID_ARGUMENT, "too many dimensions in a file");
    if (rank > 0)
        memcpy(dims, take(blob, rank * sizeof *dims), rank * sizeof *dims);
    memcpy(&size, take(blob, sizeof size), sizeof size);
    const char *bytes = take(blob, size);
    OrtStatus *failed = o->api->CreateTensorAsOrtValue(o->allocator, dims, rank, type, out);
    if (!failed && type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
        return strings_fill(o, *out, bytes, size);
    if (!failed && size > 0)
        failed = o->api->GetTensorMutableData(*out, &data);
    if (!failed && size > 0)
        memcpy(data, bytes, size);
    return failed;
}

static OrtStatus *inputs_read(const struct oracle *o, struct run *run) {
    const uint32_t count = take_u32(&run->given);
    OrtStatus *failed = NULL;
    for (uint32_t i = 0; i < count && !failed; i++) {
        const uint32_t length = take_u32(&run->given);
        const char *name = take(&run->given, length);
        OrtValue *value = NULL;
        failed = tensor_read(o, &run->given, &value);
        bool is_taken = false;
        for (size_t k = 0; k < run->counts[0] && !is_taken; k++) {
            if (!run->inputs[k] && strlen(run->names[0][k]) == length &&
                memcmp(run->names[0][k], name, length) == 0) {
                run->inputs[k] = value;
                is_taken = true;
            }
        }
        if (!is_taken && value)
            o->api->ReleaseValue(value);
    }
    return failed;
}

static void put(FILE *file, const void *bytes, size_t size) {
    if (size > 0 && fwrite(bytes, 1, size, file) != size) {
        fprintf(stderr, "cannot write an output file\n");
        exit(1);
    }
}

static void put_u32(FILE *file, size_t value) {
    const uint32_t narrow = (uint32_t)value;
    put(file, &narrow, sizeof narrow);
}

static OrtStatus *strings_write(const struct oracle *o, FILE *file, const OrtValue *value,
                                size_t count) {
    size_t text_size = 0;
    OrtStatus *failed = o->api->GetStringTensorDataLength(value, &text_size);
    if (failed)
        return failed;
    const uint64_t size = text_size + count * sizeof(uint32_t);
    put(file, &size, sizeof size);
    char *element = need(malloc(text_size + 1));
    for (size_t i = 0; i < count && !failed; i++) {
        size_t length = 0;
        failed = o->api->GetStringTensorElementLength(value, i, &length);
        if (!failed)
            failed = o->api->GetStringTensorElement(value, length, i, element);
        if (!failed) {
            put_u32(file, length);
            put(file, element, length);
        }
    }
    free(element);
    return failed;
}

static OrtStatus *tensor_write(const struct oracle *o, FILE *file, const char *name,
                               OrtValue *value) {
    OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    size_t rank = 0, count = 0;
    int64_t dims[MAX_RANK];
    void *data = NULL;
    OrtStatus *failed = o->api->GetTensorTypeAndShape(value, &info);
    failed = failed ? failed : o->api->GetTensorElementType(info, &type);
    failed = failed ? failed : o->api->GetDimensionsCount(info, &rank);
    if (!failed && rank > MAX_RANK)
        failed = o->api->CreateStatus(ORT_FAIL, "too many dimensions in an output");
    failed = failed ? failed : o->api->GetDimensions(info, dims, rank);
    failed = failed ? failed : o->api->GetTensorShapeElementCount(info, &count);
    if (!failed && type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
        failed = o->api->GetTensorMutableData(value, &data);
    if (info)
        o->api->ReleaseTensorTypeAndShapeInfo(info);
    if (failed)
        return failed;
    put_u32(file, strlen(name));
    put(file, name, strlen(name));
    put_u32(file, type);
    put_u32(file, rank);
    put(file, dims, rank * sizeof *dims);
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
        return strings_write(o, file, value, count);
    const uint64_t size = count * element_size(type);
    put(file, &size, sizeof size);
    put(file, data, size);
    return NULL;
}

/* Names of the inputs or outputs; false and an answer where one is nothing that can be served. */
static bool names_read(const struct oracle *o, struct run *run, int is_output) {
    const OrtApi *api = o->api;
    static const char *const KINDS[] = {"unknown",      "tensor", "sequence", "map", "opaque",
                                        "sparse tensor", "optional"};
    size_t count = 0;
    OrtStatus *failed = is_output ? api->SessionGetOutputCount(run->session, &count)
                                  : api->SessionGetInputCount(run->session, &count);
    for (size_t i = 0; !failed && i < count && i < MAX_IO; i++) {
        OrtTypeInfo *info = NULL;
        const OrtTensorTypeAndShapeInfo *tensor = NULL;
        ONNXType kind = ONNX_TYPE_UNKNOWN;
        ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
        char **name = &run->names[is_output][i];
        failed = is_output ? api->SessionGetOutputName(run->session, i, o->allocator, name)
                           : api->SessionGetInputName(run->session, i, o->allocator, name);
        run->counts[is_output] += !failed;
        if (!failed)
            failed = is_output ? api->SessionGetOutputTypeInfo(run->session, i, &info)
                               : api->SessionGetInputTypeInfo(run->session, i, &info);
        failed = failed ? failed : api->GetOnnxTypeFromTypeInfo(info, &kind);
        if (!failed && kind == ONNX_TYPE_TENSOR)
            failed = api->CastTypeInfoToTensorInfo(info, &tensor);
        if (tensor && !failed)
            failed = api->GetTensorElementType(tensor, &type);
        if (info)
            api->ReleaseTypeInfo(info);
        if (!failed && (kind != ONNX_TYPE_TENSOR ||
                        (type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING && !element_size(type)))) {
            printf("type %s %s\n", is_output ? "output" : "input",
                   kind == ONNX_TYPE_TENSOR ? "of an element type without a name" : KINDS[kind]);
            return false;
        }
    }
    return !answer_failed(o, "load", failed);
}

static void outputs_write(const struct oracle *o, struct run *run, const char *path) {
    FILE *file = need(fopen(path, "wb"));
    OrtStatus *failed = NULL;
    put_u32(file, run->counts[1]);
    for (size_t i = 0; i < run->counts[1] && !failed; i++)
        failed = tensor_write(o, file, run->names[1][i], run->outputs[i]);
    if (fclose(file) != 0) {
        fprintf(stderr, "cannot write an output file\n");
        exit(1);
    }
    if (!answer_failed(o, "run", failed))
        printf("ok\n");
}

/* As the server sets a session: one thread, everything else as ONNX Runtime has it. */
static OrtStatus *session_open(const struct oracle *o, const char *path, OrtSession **out) {
    OrtSessionOptions *options = NULL;
    OrtStatus *failed = o->api->CreateSessionOptions(&options);
    failed = failed ? failed : o->api->SetIntraOpNumThreads(options, 1);
    failed = failed ? failed : o->api->SetInterOpNumThreads(options, 1);
    failed = failed ? failed
                    : o->api->SetSessionLogSeverityLevel(options, ORT_LOGGING_LEVEL_FATAL);
    failed = failed ? failed : o->api->CreateSession(o->env, path, options, out);
    if (options)
        o->api->ReleaseSessionOptions(options);
    return failed;
}

static void model_run(const struct oracle *o, struct run *run, const char *inputs,
                      const char *outputs, int runs) {
    if (!names_read(o, run, 0) || !names_read(o, run, 1))
        return;
    if (!file_read(inputs, &run->given)) {
        fprintf(stderr, "cannot read %s\n", inputs);
        exit(1);
    }
    OrtStatus *failed = inputs_read(o, run);
    for (int i = 0; i < runs && !failed; i++) {
        for (size_t k = 0; k < run->counts[1]; k++) {
            o->api->ReleaseValue(run->outputs[k]);
            run->outputs[k] = NULL;
        }
        failed = o->api->Run(run->session, NULL, (const char *const *)run->names[0],
                             (const OrtValue *const *)run->inputs, run->counts[0],
                             (const char *const *)run->names[1], run->counts[1], run->outputs);
    }
    if (!answer_failed(o, "run", failed))
        outputs_write(o, run, outputs);
}

static void model_answer(const struct oracle *o, const char *model, const char *inputs,
                         const char *outputs, int runs) {
    struct run *run = need(calloc(1, sizeof *run));
    if (!answer_failed(o, "load", session_open(o, model, &run->session)))
        model_run(o, run, inputs, outputs, runs);
    for (size_t i = 0; i < MAX_IO; i++) {
        o->api->ReleaseValue(run->inputs[i]);
        o->api->ReleaseValue(run->outputs[i]);
        for (int side = 0; side < 2; side++)
            if (run->names[side][i])
                o->allocator->Free(o->allocator, run->names[side][i]);
    }
    o->api->ReleaseSession(run->session);
    free(run->given.bytes);
    free(run);
}

static bool oracle_open(struct oracle *o, const char *library) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle ? dlsym(handle, "OrtGetApiBase") : NULL;
    const OrtApiBase *(*entry)(void) = NULL;
    memcpy(&entry, &symbol, sizeof entry);
    o->api = entry ? entry()->GetApi(API_NEEDED) : NULL;
    if (!o->api) {
        fprintf(stderr, "%s is no ONNX Runtime of 1.%d or newer\n", library, API_NEEDED);
        return false;
    }
    OrtStatus *failed = o->api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "oracle", &o->env);
    failed = failed ? failed : o->api->GetAllocatorWithDefaultOptions(&o->allocator);
    return !answer_failed(o, "load", failed);
}

int main(int argc, char **argv) {
    struct oracle oracle = {NULL, NULL, NULL};
    char line[4096];
    if (argc != 2) {
        fprintf(stderr, "usage: %s LIBRARY <lines\n", argv[0]);
        return 2;
    }
    if (!oracle_open(&oracle, argv[1]))
        return 1;
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        char *inputs = strchr(line, '\t');
        char *outputs = inputs ? strchr(inputs + 1, '\t') : NULL;
        char *runs = outputs ? strchr(outputs + 1, '\t') : NULL;
        if (!runs) {
            fprintf(stderr, "a line is not three paths and a number\n");
            return 1;
        }
        *inputs = *outputs = *runs = 0;
        model_answer(&oracle, line, inputs + 1, outputs + 1, (int)strtol(runs + 1, NULL, 10));
        fflush(stdout);
    }
    return 0;
}
