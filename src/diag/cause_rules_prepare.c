/* Rules about what comes before the model: tokenizing, pictures, the workers that do both. Any
 * thread; pure. Invariant: of preprocess, base64 is the body's (cause_rules_work.c), pictures and
 * tokenizing share the rest, and starved workers exclude both. Read next: causes.c, the table. */
#include "diag/cause_rules.h"

#include <math.h>

/* Its own tokenizing, its neighbours' in the same batch (stamped as dispatch before its turn and
 * as preprocess_wait after it), and that of earlier batches while it waited for the instance. */
double cause_part_inline(const struct evidence *evidence, const struct run_request *request) {
    if (!evidence->is_inline)
        return 0;
    return (double)request->part_ns[STAGE_PREPROCESS] +
           (double)request->part_ns[STAGE_PREPROCESS_WAIT] +
           fmax(request->part_ns[STAGE_DISPATCH] - evidence_wake_ns(request), 0) +
           (double)request->tokenizing_wait_ns;
}

bool cause_holds_inline(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow;
    const double own = slow->part_ns[STAGE_PREPROCESS];
    const double neighbours = slow->part_ns[STAGE_PREPROCESS_WAIT] +
                              fmax(slow->part_ns[STAGE_DISPATCH] - slow->wake_ns, 0);
    if (!evidence->is_inline)
        return finding_unless(finding, "no instance tokenizes in this run");
    finding_figure(finding, "own_ms", "its own tokenizing", "ms", MS(own));
    finding_figure(finding, "neighbours_ms", "waiting for its batch's other texts", "ms",
                   MS(neighbours));
    finding_figure(finding, "earlier_ms", "waiting while earlier batches were tokenized", "ms",
                   MS(fmax(finding->slow_ns - own - neighbours, 0)));
    finding_figure(finding, "inline_batch_ms", "tokenizing in the instance's thread, a batch", "ms",
                   MS(evidence->batches.inline_ns));
    finding_figure(finding, "execute_batch_ms", "against the model", "ms",
                   MS(evidence->batches.execute_ns));
    finding_advise(finding,
                   "use --preprocess pool: the instance then runs the model and nothing else");
    finding_expect(evidence, finding, own);
    return true;
}

double cause_part_workers(const struct evidence *evidence, const struct run_request *request) {
    const double before = evidence->is_inline ? 0 : (double)request->part_ns[STAGE_PREPROCESS_WAIT];
    return before + (double)request->part_ns[STAGE_POSTPROCESS_WAIT];
}

/* Decoding JPEG, PNG or WebP is most of what the workers do with a picture, as it is usually. */
static bool is_mostly_image_decode(const struct group *group) {
    return group->step_ns[STEP_IMAGE_DECODE] > 0.5 * group->part_ns[STAGE_PREPROCESS];
}

const char *pictures_remedy(const struct group *group) {
    if (group->scalable_jpegs > 0 && group->scalable_jpegs >= 0.5 * group->pictures)
        return "most are JPEGs much larger than the model's canvas: jpeg_scaling in pipeline.yaml "
               "decodes those at a fraction of their size";
    if (group->pictures > 0)
        return "jpeg_scaling would not help (it is on, or they are no large JPEGs): have clients "
               "send smaller pictures";
    return "where they are large JPEGs, jpeg_scaling in pipeline.yaml decodes them at a fraction of "
           "their size; or have clients send smaller pictures"; /* a trace without these counts */
}

bool cause_holds_workers(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow;
    finding_figure(finding, "wait_slow_ms", "waiting for a worker, slow", "ms",
                   MS(finding->slow_ns));
    finding_figure(finding, "wait_middle_ms", "middle", "ms", MS(finding->middle_ns));
    finding_figure(finding, "preprocess_ms", "preprocessing itself, slow", "ms",
                   MS(slow->part_ns[STAGE_PREPROCESS]));
    if (slow->step_ns[STEP_IMAGE_DECODE] > 0)
        finding_figure(finding, "image_decode_ms", "of it decoding pictures", "ms",
                       MS(slow->step_ns[STEP_IMAGE_DECODE]));
    if (evidence->run->config.workers > 0)
        finding_figure(finding, "workers", "workers", "", (double)evidence->run->config.workers);
    if (finding->slow_ns < LATE_NS)
        return finding_unless(finding, "the wait for a worker is %.3f ms", MS(finding->slow_ns));
    if (is_mostly_image_decode(slow))
        finding_advise(finding,
                       "more --workers while processors are free; they decode pictures most of "
                       "the time: %s", pictures_remedy(slow));
    else
        finding_advise(finding,
                       "more --workers while processors are free, or shorter texts (--max-tokens)");
    finding_expect(evidence, finding, 0);
    return true;
}

static double pictures_ns(const float *step_ns) {
    return (double)step_ns[STEP_IMAGE_DECODE] + (double)step_ns[STEP_RESIZE] +
           (double)step_ns[STEP_PIXELS];
}

double cause_part_pictures(const struct evidence *evidence, const struct run_request *request) {
    return evidence->is_inline ? 0 : pictures_ns(request->step_ns);
}

double cause_part_tokenizing(const struct evidence *evidence, const struct run_request *request) {
    return fmax(cause_part_starved_workers(evidence, request) -
                    cause_part_pictures(evidence, request), 0);
}

double cause_part_starved_workers(const struct evidence *evidence,
                                  const struct run_request *request) {
    if (evidence->is_inline) return 0;
    return fmax((double)request->part_ns[STAGE_PREPROCESS] - (double)request->step_ns[STEP_BASE64],
                0);
}

static bool is_input_longer(const struct evidence *evidence) {
    return evidence->slow.bytes_in > LONGER * evidence->middle.bytes_in ||
           evidence->slow.tokens > LONGER * evidence->middle.tokens;
}

static void preprocess_figures(const struct evidence *evidence, struct finding *finding) {
    finding_figure(finding, "preprocess_slow_ms", "preprocessing, slow", "ms",
                   MS(finding->slow_ns));
    finding_figure(finding, "preprocess_middle_ms", "middle", "ms", MS(finding->middle_ns));
    finding_figure(finding, "bytes_slow", "body, slow", "bytes", evidence->slow.bytes_in);
    finding_figure(finding, "bytes_middle", "middle", "bytes", evidence->middle.bytes_in);
}

bool cause_holds_tokenizing(const struct evidence *evidence, struct finding *finding) {
    preprocess_figures(evidence, finding);
    if (!is_input_longer(evidence))
        return finding_unless(finding, "the slow ones' texts are not longer");
    finding_advise(finding, "the slow ones' texts are longer: --max-tokens cuts them earlier");
    return true;
}

bool cause_holds_pictures(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow, *middle = &evidence->middle;
    finding_figure(finding, "image_decode_slow_ms", "image_decode, slow", "ms",
                   MS(slow->step_ns[STEP_IMAGE_DECODE]));
    finding_figure(finding, "resize_slow_ms", "resize", "ms", MS(slow->step_ns[STEP_RESIZE]));
    finding_figure(finding, "pixels_slow_ms", "pixels", "ms", MS(slow->step_ns[STEP_PIXELS]));
    finding_figure(finding, "pictures_middle_ms", "together, middle", "ms",
                   MS(finding->middle_ns));
    finding_figure(finding, "bytes_slow", "body, slow", "bytes", slow->bytes_in);
    finding_figure(finding, "bytes_middle", "middle", "bytes", middle->bytes_in);
    finding_figure(finding, "pictures", "pictures, slow", "", slow->pictures);
    finding_figure(finding, "scalable_jpegs", "of them for jpeg_scaling", "",
                   slow->scalable_jpegs);
    if (!is_input_longer(evidence))
        return finding_unless(finding, "the slow ones' pictures are not larger");
    if (slow->step_ns[STEP_IMAGE_DECODE] > 0.5 * finding->slow_ns)
        finding_advise(finding,
                       "the slow ones' pictures are larger, and decoding them is most of it: %s",
                       pictures_remedy(slow));
    else
        finding_advise(finding,
                       "the slow ones' pictures are larger: have clients send smaller ones");
    return true;
}

bool cause_holds_starved_workers(const struct evidence *evidence, struct finding *finding) {
    preprocess_figures(evidence, finding);
    if (is_input_longer(evidence))
        return finding_unless(finding, "the slow ones' inputs are longer");
    if (finding->slow_ns < LATE_NS)
        return finding_unless(finding, "preprocessing takes %.3f ms", MS(finding->slow_ns));
    finding_advise(finding,
                   "inputs of the same size took longer: the workers were preempted. Fewer "
                   "--workers or --instances, or take other work (a load generator too) off this "
                   "machine");
    return true;
}
