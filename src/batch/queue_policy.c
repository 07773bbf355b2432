/* See queue_policy.h. */
#include "batch/queue_policy.h"

uint32_t queue_policy_level(const struct queue_policies *policies, uint64_t priority) {
    const uint32_t levels = policies->levels > 0 ? policies->levels : 1;
    if (priority >= 1 && priority <= levels) return (uint32_t)priority;
    const uint32_t usual = policies->default_level;
    return usual >= 1 && usual <= levels ? usual : levels;
}

const struct queue_policy *queue_policy_of(const struct queue_policies *policies, uint32_t level) {
    for (uint32_t i = 0; i < policies->named_count; i++)
        if (policies->named[i].level == level) return &policies->named[i].policy;
    return &policies->usual;
}

uint64_t queue_policy_timeout_ns(const struct queue_policy *policy, uint64_t own_ns) {
    const uint64_t usual = policy->default_timeout_ns;
    if (!policy->allows_override || own_ns == 0) return usual;
    return usual == 0 || own_ns < usual ? own_ns : usual;
}
