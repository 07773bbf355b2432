/* Whether what a configuration says of batches, priorities and steps is consistent, without the
 * models. Pure, any thread. Invariant: after ST_OK every level of priority is one there is, and
 * every step names a model and both its maps. Whether the steps join up needs the models. */
#include "schema/model_config_check.h"

#include <string.h>

static enum status check_preferred(const struct model_config *config,
                                   const Inference__ModelDynamicBatching *batching,
                                   struct err *err) {
    static const char path[] = "dynamic_batching.preferred_batch_size";
    const int32_t most = config->message->max_batch_size;
    for (size_t i = 0; i < batching->n_preferred_batch_size; i++) {
        const int32_t size = batching->preferred_batch_size[i];
        if (size < 1) {
            return model_config_fault(config, path, 0, ST_INVALID, err,
                                      "a preferred_batch_size is %d: each is 1 or more", size);
        }
        if (most > 0 && size > most) {
            return model_config_fault(config, path, 0, ST_INVALID, err,
                                      "a preferred_batch_size is %d, more than max_batch_size %d",
                                      size, most);
        }
    }
    return ST_OK;
}

static enum status check_levels(const struct model_config *config,
                                const Inference__ModelDynamicBatching *batching, struct err *err) {
    const uint64_t levels = batching->priority_levels, usual = batching->default_priority_level;
    if (levels > MODEL_CONFIG_MAX_LEVELS) {
        return model_config_fault(config, "dynamic_batching.priority_levels", 0, ST_INVALID, err,
                                  "priority_levels is %llu: %d are the most",
                                  (unsigned long long)levels, MODEL_CONFIG_MAX_LEVELS);
    }
    if (levels > 0 && (usual == 0 || usual > levels)) {
        const char *path = usual == 0 ? "dynamic_batching.priority_levels"
                                      : "dynamic_batching.default_priority_level";
        return model_config_fault(config, path, 0, ST_INVALID, err,
                                  "default_priority_level is %llu: it must be from 1 to "
                                  "priority_levels, %llu",
                                  (unsigned long long)usual, (unsigned long long)levels);
    }
    for (size_t i = 0; i < batching->n_priority_queue_policy && levels > 0; i++) {
        const uint64_t level = batching->priority_queue_policy[i]->key;
        if (level == 0 || level > levels) {
            return model_config_fault(config, "dynamic_batching.priority_queue_policy", i,
                                      ST_INVALID, err,
                                      "priority_queue_policy is given for level %llu: levels are "
                                      "from 1 to priority_levels, %llu",
                                      (unsigned long long)level, (unsigned long long)levels);
        }
    }
    return ST_OK;
}

static bool delays(const Inference__ModelQueuePolicy *policy) {
    return policy != NULL && policy->default_timeout_microseconds != 0 &&
           policy->timeout_action == INFERENCE__MODEL_QUEUE_POLICY__TIMEOUT_ACTION__DELAY;
}

/* Answers in the order of the requests go together with nothing that changes the order. */
static enum status check_ordering(const struct model_config *config,
                                  const Inference__ModelDynamicBatching *batching,
                                  struct err *err) {
    static const char path[] = "dynamic_batching.preserve_ordering";
    if (!batching->preserve_ordering) {
        return ST_OK;
    }
    if (batching->priority_levels > 1) {
        return model_config_fault(config, path, 0, ST_INVALID, err,
                                  "preserve_ordering and more than one of priority_levels exclude "
                                  "each other");
    }
    bool is_delayed = delays(batching->default_queue_policy);
    for (size_t i = 0; i < batching->n_priority_queue_policy; i++) {
        is_delayed = is_delayed || delays(batching->priority_queue_policy[i]->value);
    }
    return is_delayed ? model_config_fault(config, path, 0, ST_INVALID, err,
                                           "preserve_ordering and the timeout_action DELAY exclude "
                                           "each other")
                      : ST_OK;
}

static enum status check_batching(const struct model_config *config,
                                  const Inference__ModelDynamicBatching *batching,
                                  struct err *err) {
    enum status status = check_preferred(config, batching, err);
    status = status != ST_OK ? status : check_levels(config, batching, err);
    return status != ST_OK ? status : check_ordering(config, batching, err);
}

/* --- ensembles --- */

static enum status check_step(const struct model_config *config, size_t index, struct err *err) {
    static const char path[] = "ensemble_scheduling.step";
    const Inference__ModelEnsembling__Step *step =
        config->message->ensemble_scheduling->step[index];
    const char *sentence = NULL;
    if (step->model_name[0] == '\0') {
        sentence = "has no model_name";
    } else if (strcmp(step->model_name, config->message->name) == 0) {
        sentence = "is the ensemble itself";
    } else if (step->model_version < -1) {
        sentence = "has a model_version below -1";
    } else if (step->n_input_map == 0) {
        sentence = "has no input_map";
    } else if (step->n_output_map == 0) {
        sentence = "has no output_map";
    }
    return sentence == NULL ? ST_OK
                            : model_config_fault(config, path, index, ST_INVALID, err,
                                                 "step %zu %s", index + 1, sentence);
}

static enum status check_ensemble(const struct model_config *config, struct err *err) {
    const Inference__ModelConfig *message = config->message;
    if (message->scheduling_choice_case !=
        INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING) {
        return model_config_fault(config, "platform", 0, ST_INVALID, err,
                                  "platform is ensemble, but ensemble_scheduling is missing");
    }
    if (strcmp(message->platform, "ensemble") != 0) {
        return model_config_fault(config, "ensemble_scheduling", 0, ST_INVALID, err,
                                  "ensemble_scheduling needs platform: \"ensemble\"");
    }
    const char *misplaced = message->n_instance_group > 0 ? "instance_group"
                            : message->optimization != NULL ? "optimization"
                            : message->n_model_warmup > 0   ? "model_warmup"
                                                            : NULL;
    if (misplaced != NULL) {
        return model_config_fault(config, misplaced, 0, ST_INVALID, err,
                                  "an ensemble has no %s: that belongs to its steps' models",
                                  misplaced);
    }
    if (message->n_input == 0 || message->n_output == 0) {
        return model_config_fault(config, "ensemble_scheduling", 0, ST_INVALID, err,
                                  "an ensemble must list its input and its output");
    }
    if (message->ensemble_scheduling->n_step == 0) {
        return model_config_fault(config, "ensemble_scheduling", 0, ST_INVALID, err,
                                  "ensemble_scheduling has no step");
    }
    enum status status = ST_OK;
    for (size_t i = 0; status == ST_OK && i < message->ensemble_scheduling->n_step; i++) {
        status = check_step(config, i, err);
    }
    return status;
}

enum status model_config_check_schedule(const struct model_config *config, struct err *err) {
    const Inference__ModelConfig *message = config->message;
    if (message->scheduling_choice_case ==
        INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_DYNAMIC_BATCHING) {
        const enum status status = check_batching(config, message->dynamic_batching, err);
        if (status != ST_OK) {
            return status;
        }
    }
    return model_config_is_ensemble(message) ? check_ensemble(config, err) : ST_OK;
}
