/* Whether a configuration is whole and consistent, without the model: the entry, tensors, versions,
 * instances, warm-up. Pure, any thread. Invariant: the first fault in the order of the fields below
 * is the one that is told. What schedules requests is model_config_check_schedule.c's. */
#include "schema/model_config_check.h"

#include <stdio.h>
#include <string.h>

enum {
    MAX_INSTANCES = 1024, /* of a group */
    MAX_TENSORS = 4096    /* names are compared each with each */
};

/* One tensor of the configuration, whichever list it is in. */
struct declared {
    const char *list; /* "input", "output" */
    size_t index;
    const char *name;
    Inference__DataType type;
    const int64_t *dims;
    size_t rank;
    const Inference__ModelTensorReshape *reshape;
};

static struct declared declared_input(const Inference__ModelConfig *message, size_t index) {
    const Inference__ModelInput *input = message->input[index];
    return (struct declared){"input",     index,         input->name,    input->data_type,
                             input->dims, input->n_dims, input->reshape};
}

static struct declared declared_output(const Inference__ModelConfig *message, size_t index) {
    const Inference__ModelOutput *output = message->output[index];
    return (struct declared){"output",     index,          output->name,   output->data_type,
                             output->dims, output->n_dims, output->reshape};
}

static enum status check_name(const struct model_config *config, const char *directory,
                              struct err *err) {
    const char *name = config->message->name;
    if (name[0] != '\0' && strcmp(name, directory) != 0) {
        return model_config_fault(config, "name", 0, ST_INVALID, err,
                                  "name is %s, but the model's directory is %s: make them the "
                                  "same or leave name away",
                                  name, directory);
    }
    return ST_OK;
}

static enum status check_platform(const struct model_config *config, struct err *err) {
    const char *platform = config->message->platform, *backend = config->message->backend;
    const bool is_ensemble = strcmp(platform, "ensemble") == 0;
    if (platform[0] != '\0' && !is_ensemble && strcmp(platform, "onnxruntime_onnx") != 0) {
        return model_config_fault(config, "platform", 0, ST_UNSUPPORTED, err,
                                  "platform is %s: models are ONNX files (onnxruntime_onnx) or "
                                  "ensembles (ensemble)",
                                  platform);
    }
    if (backend[0] != '\0' && (is_ensemble || strcmp(backend, "onnxruntime") != 0)) {
        return model_config_fault(config, "backend", 0, ST_UNSUPPORTED, err,
                                  "backend is %s: models run on onnxruntime, and an ensemble has "
                                  "no backend",
                                  backend);
    }
    return ST_OK;
}

static enum status check_versions(const struct model_config *config, struct err *err) {
    const Inference__ModelVersionPolicy *policy = config->message->version_policy;
    if (policy == NULL ||
        policy->policy_choice_case != INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_SPECIFIC) {
        return ST_OK;
    }
    const Inference__ModelVersionPolicy__Specific *specific = policy->specific;
    if (specific->n_versions == 0) {
        return model_config_fault(config, "version_policy.specific", 0, ST_INVALID, err,
                                  "version_policy.specific lists no versions");
    }
    for (size_t i = 0; i < specific->n_versions; i++) {
        if (specific->versions[i] <= 0) {
            return model_config_fault(config, "version_policy.specific.versions", 0, ST_INVALID,
                                      err, "version_policy.specific lists %lld: versions are whole "
                                           "numbers from 1",
                                      (long long)specific->versions[i]);
        }
    }
    return ST_OK;
}

/* --- tensors --- */

static enum status tensor_fault(const struct model_config *config, const struct declared *tensor,
                                struct err *err, const char *sentence) {
    return model_config_fault(config, tensor->list, tensor->index, ST_INVALID, err, "%s %s: %s",
                              tensor->list, tensor->name, sentence);
}

static bool are_dims_valid(const int64_t *dims, size_t rank) {
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 1 && dims[i] != -1) {
            return false;
        }
    }
    return true;
}

/* The product of the dims from *at up to a variable one, which is passed over; 0 where there are
 * more than an int64 counts. */
static int64_t run_of_dims(const int64_t *dims, size_t rank, size_t *at, bool *out_is_last) {
    int64_t product = 1;
    for (; *at < rank && dims[*at] != -1; (*at)++) {
        if (product == 0 || __builtin_mul_overflow(product, dims[*at], &product)) {
            product = 0;
        }
    }
    *out_is_last = *at == rank;
    *at += *at < rank;
    return product;
}

/* Same number of elements whatever the variable dims are: between these the fixed ones multiply to
 * the same. */
static bool is_same_count(const struct declared *tensor) {
    const Inference__ModelTensorReshape *reshape = tensor->reshape;
    bool is_last = false, is_last_of_reshape = false;
    for (size_t i = 0, j = 0; !is_last;) {
        const int64_t run = run_of_dims(tensor->dims, tensor->rank, &i, &is_last);
        if (run == 0 || run != run_of_dims(reshape->shape, reshape->n_shape, &j,
                                           &is_last_of_reshape)) {
            return false;
        }
        if (is_last != is_last_of_reshape) {
            return false;
        }
    }
    return true;
}

static enum status check_reshape(const struct model_config *config, const struct declared *tensor,
                                 struct err *err) {
    const Inference__ModelTensorReshape *reshape = tensor->reshape;
    if (tensor->rank == 0) {
        return tensor_fault(config, tensor, err, "reshape needs dims to begin with");
    }
    if (reshape->n_shape > TENSOR_MAX_RANK) {
        return tensor_fault(config, tensor, err, "reshape has more than 8 dimensions");
    }
    if (!are_dims_valid(reshape->shape, reshape->n_shape)) {
        return tensor_fault(config, tensor, err,
                            "each dimension of reshape is 1 or more, or -1 for any size");
    }
    if (!is_same_count(tensor)) {
        return tensor_fault(config, tensor, err,
                            "reshape and dims must have the same number of elements, and the same "
                            "variable dimensions");
    }
    return ST_OK;
}

static enum status check_tensor(const struct model_config *config, const struct declared *tensor,
                                struct err *err) {
    if (tensor->name[0] == '\0') {
        return model_config_fault(config, tensor->list, tensor->index, ST_INVALID, err,
                                  "%s %zu has no name", tensor->list, tensor->index + 1);
    }
    if (tensor->rank > TENSOR_MAX_RANK) {
        return tensor_fault(config, tensor, err, "dims has more than 8 dimensions");
    }
    if (!are_dims_valid(tensor->dims, tensor->rank)) {
        return tensor_fault(config, tensor, err,
                            "each of dims is 1 or more, or -1 for any size");
    }
    if (model_config_is_ensemble(config->message)) {
        enum dtype ignored;
        if (!model_config_dtype(tensor->type, &ignored) || tensor->rank == 0) {
            return tensor_fault(config, tensor, err,
                                "an ensemble must say data_type and dims, as no model does");
        }
    }
    return tensor->reshape == NULL ? ST_OK : check_reshape(config, tensor, err);
}

/* All of one list, and that no name comes twice. */
static enum status check_tensors(const struct model_config *config, size_t count,
                                 struct declared (*get)(const Inference__ModelConfig *, size_t),
                                 struct err *err) {
    if (count > MAX_TENSORS) {
        return err_set(err, ST_INVALID, "%s: %zu inputs or outputs: %d are the most",
                       config->origin, count, MAX_TENSORS);
    }
    for (size_t i = 0; i < count; i++) {
        const struct declared tensor = get(config->message, i);
        const enum status status = check_tensor(config, &tensor, err);
        if (status != ST_OK) {
            return status;
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(get(config->message, j).name, tensor.name) == 0) {
                return tensor_fault(config, &tensor, err, "the name was given before: keep one");
            }
        }
    }
    return ST_OK;
}

static enum status check_formats(const struct model_config *config, struct err *err) {
    for (size_t i = 0; i < config->message->n_input; i++) {
        const struct declared tensor = declared_input(config->message, i);
        if (config->message->input[i]->format != INFERENCE__MODEL_INPUT__FORMAT__FORMAT_NONE &&
            tensor.rank != 0 && tensor.rank != 3) {
            return tensor_fault(config, &tensor, err, "format is for pictures, which have 3 dims");
        }
    }
    return ST_OK;
}

/* --- files, instances, warm-up --- */

static enum status check_files(const struct model_config *config, struct err *err) {
    const char *file = config->message->default_model_filename;
    if (file[0] != '\0' && !model_config_is_below(file)) {
        return model_config_fault(config, "default_model_filename", 0, ST_INVALID, err,
                                  "default_model_filename is %s: it must be a path below the "
                                  "version's directory",
                                  file);
    }
    for (size_t i = 0; i < config->message->n_output; i++) {
        const Inference__ModelOutput *output = config->message->output[i];
        if (output->label_filename[0] != '\0' && !model_config_is_below(output->label_filename)) {
            return model_config_fault(config, "output", i, ST_INVALID, err,
                                      "output %s: label_filename is %s: it must be a path below "
                                      "the model's directory",
                                      output->name, output->label_filename);
        }
    }
    return ST_OK;
}

static enum status check_instances(const struct model_config *config, struct err *err) {
    for (size_t i = 0; i < config->message->n_instance_group; i++) {
        const Inference__ModelInstanceGroup *group = config->message->instance_group[i];
        if (group->count < 0 || group->count > MAX_INSTANCES) {
            return model_config_fault(config, "instance_group", i, ST_INVALID, err,
                                      "instance_group %zu: count is %d: it must be from 1 to %d",
                                      i + 1, group->count, MAX_INSTANCES);
        }
        const bool is_without_gpu =
            group->kind == INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_CPU ||
            group->kind == INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_MODEL;
        if (is_without_gpu && group->n_gpus > 0) {
            return model_config_fault(config, "instance_group", i, ST_INVALID, err,
                                      "instance_group %zu: gpus belongs to KIND_GPU and KIND_AUTO: "
                                      "remove it or change kind",
                                      i + 1);
        }
    }
    return ST_OK;
}

static enum status check_warmup_input(const struct model_config *config, size_t index,
                                      const Inference__ModelWarmup__InputsEntry *entry,
                                      struct err *err) {
    const Inference__ModelWarmup__Input *input = entry->value;
    enum dtype ignored;
    const char *sentence = NULL;
    if (!model_config_dtype(input->data_type, &ignored)) {
        sentence = "has no data_type";
    } else if (input->n_dims > TENSOR_MAX_RANK) {
        sentence = "has more than 8 dims";
    } else if (input->input_data_type_case ==
               INFERENCE__MODEL_WARMUP__INPUT__INPUT_DATA_TYPE__NOT_SET) {
        sentence = "needs one of zero_data, random_data and input_data_file";
    } else if (input->input_data_type_case ==
                   INFERENCE__MODEL_WARMUP__INPUT__INPUT_DATA_TYPE_INPUT_DATA_FILE &&
               !model_config_is_below(input->input_data_file)) {
        sentence = "needs an input_data_file below the model's directory warmup";
    }
    for (size_t i = 0; sentence == NULL && i < input->n_dims; i++) {
        sentence = input->dims[i] < 1 ? "needs dims of 1 or more each" : NULL;
    }
    return sentence == NULL
               ? ST_OK
               : model_config_fault(config, "model_warmup", index, ST_INVALID, err,
                                    "model_warmup %zu: input %s %s", index + 1, entry->key,
                                    sentence);
}

static enum status check_warmup(const struct model_config *config, struct err *err) {
    const int32_t max_batch = config->message->max_batch_size;
    for (size_t i = 0; i < config->message->n_model_warmup; i++) {
        const Inference__ModelWarmup *warmup = config->message->model_warmup[i];
        if (max_batch > 0 && warmup->batch_size > (uint32_t)max_batch) {
            return model_config_fault(config, "model_warmup", i, ST_INVALID, err,
                                      "model_warmup %zu: batch_size is %u, more than "
                                      "max_batch_size %d",
                                      i + 1, warmup->batch_size, max_batch);
        }
        if (warmup->n_inputs == 0) {
            return model_config_fault(config, "model_warmup", i, ST_INVALID, err,
                                      "model_warmup %zu has no inputs", i + 1);
        }
        for (size_t j = 0; j < warmup->n_inputs; j++) {
            const enum status status = check_warmup_input(config, i, warmup->inputs[j], err);
            if (status != ST_OK) {
                return status;
            }
        }
    }
    return ST_OK;
}

enum status model_config_check(const struct model_config *config, const char *directory,
                               struct err *err) {
    const Inference__ModelConfig *message = config->message;
    enum status status = check_name(config, directory, err);
    status = status != ST_OK ? status : check_platform(config, err);
    status = status != ST_OK ? status : check_versions(config, err);
    if (status == ST_OK && message->max_batch_size < 0) {
        status = model_config_fault(config, "max_batch_size", 0, ST_INVALID, err,
                                    "max_batch_size is %d: it is 0 for a model that does not "
                                    "batch, else 1 or more",
                                    message->max_batch_size);
    }
    status =
        status != ST_OK ? status : check_tensors(config, message->n_input, declared_input, err);
    status =
        status != ST_OK ? status : check_tensors(config, message->n_output, declared_output, err);
    status = status != ST_OK ? status : check_formats(config, err);
    status = status != ST_OK ? status : check_files(config, err);
    status = status != ST_OK ? status : check_instances(config, err);
    status = status != ST_OK ? status : model_config_check_schedule(config, err);
    return status != ST_OK ? status : check_warmup(config, err);
}
