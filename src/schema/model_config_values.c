/* What a configuration says, in our own types. Pure, any thread. */
#include "schema/model_config.h"

#include <string.h>

#define TYPES(X)                                                                               \
    X(BOOL, BOOL) X(UINT8, UINT8) X(UINT16, UINT16) X(UINT32, UINT32) X(UINT64, UINT64)        \
    X(INT8, INT8) X(INT16, INT16) X(INT32, INT32) X(INT64, INT64) X(FP16, FP16)                \
    X(FP32, FP32) X(FP64, FP64) X(STRING, BYTES) X(BF16, BF16)

bool model_config_dtype(Inference__DataType type, enum dtype *out) {
    switch (type) {
#define X(theirs, ours)                                                                        \
    case INFERENCE__DATA_TYPE__TYPE_##theirs:                                                  \
        *out = DTYPE_##ours;                                                                   \
        return true;
        TYPES(X)
#undef X
    default:
        return false;
    }
}

Inference__DataType model_config_data_type(enum dtype dtype) {
    switch (dtype) {
#define X(theirs, ours)                                                                        \
    case DTYPE_##ours:                                                                         \
        return INFERENCE__DATA_TYPE__TYPE_##theirs;
        TYPES(X)
#undef X
    default:
        return INFERENCE__DATA_TYPE__TYPE_INVALID;
    }
}

static bool is_listed(const Inference__ModelVersionPolicy__Specific *specific, uint64_t version) {
    for (size_t i = 0; i < specific->n_versions; i++) {
        if (specific->versions[i] > 0 && (uint64_t)specific->versions[i] == version) {
            return true;
        }
    }
    return false;
}

size_t model_config_versions(const Inference__ModelVersionPolicy *policy, const uint64_t *there,
                             size_t count, uint64_t *out) {
    const Inference__ModelVersionPolicy__PolicyChoiceCase choice =
        policy == NULL ? INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE__NOT_SET
                       : policy->policy_choice_case;
    const bool is_specific = choice == INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_SPECIFIC;
    size_t wanted = 1;
    if (choice == INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_LATEST &&
        policy->latest->num_versions > 0) {
        wanted = policy->latest->num_versions;
    } else if (is_specific || choice == INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_ALL) {
        wanted = count;
    }
    size_t served = 0;
    for (size_t i = wanted < count ? count - wanted : 0; i < count; i++) {
        if (!is_specific || is_listed(policy->specific, there[i])) {
            out[served++] = there[i];
        }
    }
    return served;
}

const char *model_config_parameter(const Inference__ModelConfig *config, const char *key) {
    for (size_t i = 0; i < config->n_parameters; i++) {
        const Inference__ModelConfig__ParametersEntry *entry = config->parameters[i];
        if (entry->value != NULL && strcmp(entry->key, key) == 0) {
            return entry->value->string_value;
        }
    }
    return NULL;
}

bool model_config_is_ensemble(const Inference__ModelConfig *config) {
    return config->scheduling_choice_case ==
               INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING ||
           strcmp(config->platform, "ensemble") == 0;
}

bool model_config_is_below(const char *path) {
    if (path[0] == '\0' || path[0] == '/') {
        return false;
    }
    for (const char *part = path; part != NULL;) {
        const size_t size = strcspn(part, "/");
        if (size == 2 && part[0] == '.' && part[1] == '.') {
            return false;
        }
        part = part[size] == '/' ? part + size + 1 : NULL;
    }
    return true;
}
