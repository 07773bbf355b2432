/* The option table of `telltale bench`, and the steps that follow from it. At start, one thread.
 * Invariant: a config that passed bench_options_check describes at least one step. */
#include "load/bench_options.h"

#include "load/plan.h"
#include "load/step.h"

#define AT(member) offsetof(struct bench_config, member)

static const struct option_spec OPTIONS[] = {
    {.kind = OPT_HEADING, .help = "Target"},
    {"url", OPT_STRING, AT(url), "URL", NULL, 0, 0, NULL,
     "http://HOST:PORT or https://HOST:PORT of a server that speaks the Open Inference Protocol; "
     "without it the model runs in this process"},
    {"metrics-url", OPT_STRING, AT(metrics_url), "URL", NULL, 0, 0, NULL,
     "the server's metrics page; default: http, port 8002 of the same host, /metrics"},
    {"tls-ca", OPT_STRING, AT(tls_ca), "FILE", NULL, 0, 0, NULL,
     "https: trust servers whose certificate one of these CAs signed, PEM; default: the system's"},
    {"tls-certificate", OPT_STRING, AT(tls_certificate), "FILE", NULL, 0, 0, NULL,
     "https: the certificate to show to a server that asks for one, PEM"},
    {"tls-key", OPT_STRING, AT(tls_key), "FILE", NULL, 0, 0, NULL,
     "https: its private key, PEM, not encrypted"},
    {"tls-insecure", OPT_FLAG, AT(tls_insecure), NULL, NULL, 0, 0, NULL,
     "https: take any certificate; for tests, since anybody may answer then"},
    {.kind = OPT_HEADING, .help = "Load"},
    {"concurrency", OPT_UINTS, AT(concurrency), "LIST", NULL, 1, 100000, NULL,
     "a step for each: N clients, each sends its next request when the answer is there; default "
     "1,4,8,16 unless there is --rate"},
    {"rate", OPT_UINTS, AT(rate), "LIST", NULL, 1, 10000000, NULL,
     "a step for each: N requests a second, whatever the answers do. With --concurrency C: from C "
     "users with a schedule each, who wait for their answers. Latency counts from the planned "
     "send"},
    {"arrivals", OPT_CHOICE, AT(arrivals), NULL, "poisson", 0, 0, ARRIVALS_CHOICES,
     "how planned sends are spaced"},
    {"duration", OPT_DURATION, AT(duration_ns), "TIME", "10s", 1e6, 86400e9, NULL,
     "measured part of a step"},
    {"requests", OPT_UINT, AT(requests), "N", "0", 0, 1e9, NULL,
     "end a step after N requests; 0: the duration alone ends it"},
    {"warmup", OPT_UINT, AT(warmup), "N", "50", 0, 1e7, NULL,
     "requests before each step, not counted (at least one a client); 0: none"},
    {"timeout", OPT_DURATION, AT(timeout_ns), "TIME", "10s", 1e6, 3600e9, NULL,
     "a request without an answer by then is given up; it enters the latency figures"},
    {"max-in-flight", OPT_UINT, AT(max_in_flight), "N", "1024", 1, 60000, NULL,
     "open loop: more wait for their turn, and their latency counts"},
    {"seed", OPT_UINT, AT(seed), "N", "1", 0, 1e15, NULL,
     "same seed, same arrivals and same order of inputs"},
    {"spin", OPT_FLAG, AT(spin), NULL, NULL, 0, 0, NULL,
     "spin through the last 100 us before a planned send: more exact, costs a processor"},
    {.kind = OPT_HEADING, .help = "Inputs"},
    {"input", OPT_STRING, AT(input), "SPEC", NULL, 0, 0, NULL,
     "text:PATH (a directory: a text a file; a file: a text a line), image:PATH (a directory of "
     "JPEG, PNG and WebP files, or one file), json:FILE (request bodies, one a line), or random (a "
     "demo: figures hold for random tensors only)"},
    {"shape", OPT_STRINGS, AT(shapes), "NAME:DIMS", NULL, 0, 0, NULL,
     "random inputs: the shape of one, as in input:1,3,224,224; free dimensions are 1 otherwise. "
     "May be given for each"},
    {"tokens", OPT_FLAG, AT(tokens), NULL, NULL, 0, 0, NULL,
     "tokenize here and send ids as tensors, unpadded (needs --tokenizer)"},
    {"format", OPT_CHOICE, AT(format), NULL, "auto", 0, 0, "auto|binary|json",
     "tensors as binary or as JSON (pictures then in base64); auto: JSON for texts and pictures, "
     "binary otherwise"},
    {"order", OPT_CHOICE, AT(order), NULL, "shuffled", 0, 0, "shuffled|sequential",
     "order in which the inputs are sent"},
    {.kind = OPT_HEADING, .help = "Output"},
    {"out", OPT_STRING, AT(out), "DIR", NULL, 0, 0, NULL,
     "write result.json and client.jsonl there; in process also the engine's trace, so that "
     "`telltale explain DIR` can read it"},
    {"json", OPT_FLAG, AT(json), NULL, NULL, 0, 0, NULL,
     "print result.json instead of tables"},
    ENGINE_OPTIONS(struct bench_config, engine),
};

const struct command_spec BENCH_COMMAND = {
    .name = "bench",
    .synopsis = "telltale bench --url URL --model-name NAME [options]\n"
                "telltale bench --model FILE.onnx [options]",
    .summary = "Sends real inputs to a server, or to a model in this process, in steps of\n"
               "concurrency or rate, and prints throughput and latency that can be trusted.",
    .epilog = "Examples:\n"
              "  telltale bench --url http://127.0.0.1:8000 --model-name spam \\\n"
              "      --input text:mails/ --concurrency 1,4,16,64 --duration 10s --out run1\n"
              "  telltale bench --model model.onnx --input text:mails.txt --rate 200,400,800\n"
              "  telltale bench --simulate a=4ms,b=0.05ms --rate 1800 --concurrency 200\n"
              "\n"
              "Exit codes: 0 measured, 1 failed, 2 misused, 130 interrupted (what there is was\n"
              "printed and written).",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof OPTIONS[0],
};

static bool has_model(const struct engine_config *engine) {
    return engine->model != NULL || engine->model_repositories.count > 0 || engine->simulate != NULL;
}

MUST_CHECK static enum status check_tls(const struct bench_config *config, struct err *err) {
    const bool is_given = config->tls_ca != NULL || config->tls_certificate != NULL ||
                          config->tls_key != NULL || config->tls_insecure;
    const bool is_used =
        (config->url != NULL && strncmp(config->url, "https://", 8) == 0) ||
        (config->metrics_url != NULL && strncmp(config->metrics_url, "https://", 8) == 0);
    if (is_given && !is_used)
        return err_set(err, ST_INVALID, "--tls-... options are for --url https://HOST:PORT");
    if ((config->tls_certificate == NULL) != (config->tls_key == NULL))
        return err_set(err, ST_INVALID, "--tls-certificate and --tls-key need each other");
    if (config->tls_ca != NULL && config->tls_insecure)
        return err_set(err, ST_INVALID, "--tls-insecure trusts anybody, --tls-ca does not: give one");
    return ST_OK;
}

enum status bench_options_check(const struct bench_config *config, struct err *err) {
    if (config->url == NULL && !has_model(&config->engine))
        return err_set(err, ST_INVALID,
                       "nothing to load: give --url http://HOST:PORT --model-name NAME, or "
                       "--model FILE.onnx to run it in this process");
    if (config->url != NULL && has_model(&config->engine))
        return err_set(err, ST_INVALID,
                       "--url is a server elsewhere; --model, --model-repository and --simulate run "
                       "a model in this process: give one of them");
    if (config->url != NULL && config->engine.model_name == NULL)
        return err_set(err, ST_INVALID, "--url needs --model-name NAME");
    if (config->tokens && (config->input == NULL || strncmp(config->input, "text:", 5) != 0))
        return err_set(err, ST_INVALID, "--tokens needs --input text:PATH");
    if (config->tokens && config->engine.tokenizer == NULL)
        return err_set(err, ST_INVALID, "--tokens needs --tokenizer FILE");
    if (config->shapes.count > 0 && config->input != NULL && strcmp(config->input, "random") != 0)
        return err_set(err, ST_INVALID, "--shape is for random inputs, not for --input %s",
                       config->input);
    return check_tls(config, err);
}

static const uint64_t DEFAULT_CONCURRENCY[] = {1, 4, 8, 16};

size_t bench_step_count(const struct bench_config *config) {
    size_t concurrencies = config->concurrency.count, rates = config->rate.count;
    if (rates == 0 && concurrencies == 0)
        return sizeof DEFAULT_CONCURRENCY / sizeof DEFAULT_CONCURRENCY[0];
    return (rates == 0 ? 1 : rates) * (concurrencies == 0 ? 1 : concurrencies);
}

struct step_config bench_step(const struct bench_config *config, size_t index) {
    size_t concurrencies = config->concurrency.count, rates = config->rate.count;
    struct step_config step = {
        .number = (uint32_t)index + 1,
        .mode = rates == 0 ? LOAD_CLOSED : concurrencies == 0 ? LOAD_OPEN : LOAD_PACED,
        .arrivals = (enum arrivals)config->arrivals,
        .seed = config->seed,
        .duration_ns = config->duration_ns,
        .request_limit = config->requests,
        .warmup = config->warmup,
        .timeout_ns = config->timeout_ns,
        .max_in_flight = config->max_in_flight,
        .spin = config->spin,
    };
    size_t inner = concurrencies == 0 ? 1 : concurrencies;
    if (rates > 0) step.rate = (double)config->rate.items[index / inner];
    if (concurrencies > 0)
        step.concurrency = (uint32_t)config->concurrency.items[index % inner];
    else if (rates == 0)
        step.concurrency = (uint32_t)DEFAULT_CONCURRENCY[index];
    return step;
}
