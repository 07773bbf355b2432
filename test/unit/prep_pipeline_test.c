/* pipeline.yaml: what is read, and that each mistake is named with its line and key. */
#include "prep/pipeline_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static struct arena arena;
static struct pipeline_file file;
static struct err err;

static int set_up(void **state) {
    (void)state;
    arena_init(&arena);
    file = (struct pipeline_file){.input_count = 99};
    err.text[0] = '\0';
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_done(&arena);
    return 0;
}

static enum status parse(const char *yaml) {
    return pipeline_parse(view_of(yaml), "models/x/pipeline.yaml", &arena, &file, &err);
}

static void refuses(const char *yaml, const char *sentence) {
    const enum status status = parse(yaml);
    if (status != ST_INVALID || strcmp(err.text, sentence) != 0)
        fail_msg("got %s: %s\nwanted %s", status_name(status), err.text, sentence);
    assert_int_equal(file.input_count, 99); /* untouched */
}

static void a_detector_is_read_in_both_styles(void **state) {
    (void)state;
    const char *flow =
        "inputs:\n"
        "  - image: {to: input, width: 320, height: 240, resize: opencv-linear, scale: 0.0078125,\n"
        "            mean: 0.9921875, fit: letterbox, pad: [1, 2, 3], orientation: ignore, jpeg_scaling: true}\n"
        "outputs:\n"
        "  - detect: {from: scores, boxes_from: boxes, unit: fraction, background: true,\n"
        "             score_threshold: 0.65, labels: faces.txt}\n";
    const char *block = "inputs:\n- image:\n    to: input\n    width: 320\n    height: 240\n"
                        "    resize: opencv-linear\n    scale: 0.0078125\n    mean: 0.9921875\n"
                        "    fit: letterbox\n    pad: [1, 2, 3]\n    orientation: ignore\n    jpeg_scaling: true\n"
                        "outputs:\n- detect:\n    from: scores\n    boxes_from: boxes\n"
                        "    unit: fraction\n    background: true\n    score_threshold: 0.65\n"
                        "    labels: faces.txt\n";
    for (int style = 0; style < 2; style++) {
        assert_int_equal(parse(style == 0 ? flow : block), ST_OK);
        assert_int_equal(file.input_count, 1);
        const struct pipeline_input *input = &file.inputs[0];
        assert_int_equal(input->kind, PIPELINE_IMAGE);
        assert_string_equal(input->name, "IMAGE");
        assert_string_equal(input->image.to, "input");
        assert_int_equal(input->image.fit.kind, FIT_LETTERBOX);
        assert_int_equal(input->image.fit.width, 320);
        assert_int_equal(input->image.resize, RESIZE_OPENCV_LINEAR);
        assert_float_equal(input->image.format.scale, 0.0078125, 0);
        assert_float_equal(input->image.format.mean[2], 0.9921875, 0);
        assert_float_equal(input->image.format.std[1], 1, 0);
        assert_int_equal(input->image.pad[2], 3);
        assert_true(input->image.ignores_orientation && input->image.scales_jpeg);
        assert_int_equal(file.output_count, 1);
        const struct pipeline_output *output = &file.outputs[0];
        assert_int_equal(output->kind, PIPELINE_DETECT);
        assert_string_equal(output->from, "scores");
        assert_int_equal(output->detect.config.unit, BOX_FRACTION);
        assert_true(output->detect.config.has_background);
        assert_float_equal(output->detect.config.score_threshold, 0.65f, 0);
        assert_string_equal(output->detect.labels, "models/x/faces.txt");
        assert_false(file.shows_model_outputs);
    }
}

static void a_kind_without_keys_has_its_defaults(void **state) {
    (void)state;
    assert_int_equal(parse("inputs:\n- text:\noutputs:\n- embed:\n- tokens: {}\n"), ST_OK);
    assert_string_equal(file.inputs[0].name, "TEXT");
    assert_int_equal(file.outputs[0].embed.pooling, POOLING_MEAN);
    assert_true(file.outputs[0].embed.normalizes);
    assert_string_equal(file.outputs[1].tokens.offsets, "offsets");
    assert_int_equal(file.outputs[1].line, 5);
}

static void model_outputs_are_shown_where_nothing_is_made_of_them(void **state) {
    (void)state;
    assert_int_equal(parse("inputs:\n- text:\n"), ST_OK);
    assert_true(file.shows_model_outputs);
    assert_int_equal(parse("outputs:\n- scores:\nmodel_outputs: shown\n"), ST_OK);
    assert_true(file.shows_model_outputs);
    assert_int_equal(parse("inputs:\n- text:\nmodel_outputs: hidden\n"), ST_OK);
    assert_false(file.shows_model_outputs);
}

static void files_are_beside_the_pipeline_unless_absolute(void **state) {
    (void)state;
    assert_int_equal(parse("outputs:\n- ctc: {characters: ../keys.txt}\n"), ST_OK);
    assert_string_equal(file.outputs[0].ctc.characters, "models/x/../keys.txt");
    assert_int_equal(parse("outputs:\n- ctc: {characters: /keys.txt}\n"), ST_OK);
    assert_string_equal(file.outputs[0].ctc.characters, "/keys.txt");
    assert_int_equal(pipeline_parse(view_of("inputs:\n- text: {tokenizer: t.json}\n"), "p.yaml", &arena,
                                    &file, &err), ST_OK);
    assert_string_equal(file.inputs[0].text.tokenizer, "t.json");
}

#define AT "models/x/pipeline.yaml:"
static void every_mistake_is_named_with_its_line_and_key(void **state) {
    (void)state;
    static const char *const CASES[][2] = {
        {"", AT "1: the file is empty"},
        {"# nothing\n", AT "1: the file is empty"},
        {"a: [\n", AT "2: not YAML: did not find expected node content"},
        {"- image:\n", AT "1: \"inputs:\" and \"outputs:\" are expected"},
        {"input:\n- text:\n", AT "1: input: there is no such key; did you mean \"inputs\"?"},
        {"inputs:\n- text:\ninputs:\n- text:\n", AT "3: the file: \"inputs\" comes twice"},
        {"inputs: {}\n", AT "1: inputs: a list is expected here"},
        {"inputs: []\n", AT "1: neither inputs nor outputs are named"},
        {"inputs:\n- image:\n  text:\n",
         AT "2: inputs: an entry is one kind with its keys below it, as in \"- image: {...}\""},
        {"inputs:\n- picture: {}\n", AT "2: inputs: picture: there is no such key"},
        {"inputs:\n- images: {}\n",
         AT "2: inputs: images: there is no such key; did you mean \"image\"?"},
        {"outputs:\n- image: {}\n", AT "2: outputs: image: there is no such key"},
        {"inputs:\n- image: 5\n", AT "2: image: keys and values are expected here"},
        {"inputs:\n- image:\n    widht: 5\n",
         AT "3: image.widht: there is no such key; did you mean \"width\"?"},
        {"inputs:\n- image:\n    width: 5\n    width: 6\n", AT "4: image: \"width\" comes twice"},
        {"inputs:\n- image:\n    width:\n", AT "3: image.width has no value"},
        {"inputs:\n- image:\n    width: -5\n", AT "3: image.width: '-5' is not a whole number (12, 10k, 64MiB; suffixes k, M, G, KiB, MiB, GiB)"},
        {"inputs:\n- image:\n    width: 0\n", AT "3: image.width: 0 is not between 1 and 32768"},
        {"inputs:\n- image:\n    width: [1, 2]\n",
         AT "3: image.width: one value is expected here, not a list"},
        {"inputs:\n- image:\n    to: {a: b}\n",
         AT "3: image.to: one value is expected here, not a mapping"},
        {"inputs:\n- image:\n    to: ''\n", AT "3: image.to: must not be empty"},
        {"inputs:\n- image:\n    mean: [1, 2]\n",
         AT "3: image.mean: one number or a list of 3 is expected here, not of 2"},
        {"inputs:\n- image:\n    std: [1, 0, 1]\n", AT "2: image.std: must not be 0"},
        {"inputs:\n- image:\n    pad: 256\n", AT "3: image.pad: 256 is not between 0 and 255"},
        {"inputs:\n- image:\n    resize: cubic\n",
         AT "3: image.resize: \"cubic\" is none of "
            "pillow-bilinear|pillow-bicubic|opencv-linear|opencv-cubic|nearest"},
        {"inputs:\n- image:\n    jpeg_scaling: yes\n",
         AT "3: image.jpeg_scaling: \"yes\" is neither true nor false"},
        {"inputs:\n- text: {name: A}\n- text: {name: A}\n",
         AT "3: there is another input \"A\" in line 2: give one a name of its own"},
        {"inputs:\n- text: {pair: TEXT}\n",
         AT "2: there is another input \"TEXT\" in line 2: give one a name of its own"},
        {"outputs:\n- classify:\n- ctc: {characters: k}\n",
         AT "3: there is another output \"score\" in line 2: give one a name of its own"},
        {"outputs:\n- ctc: {}\n",
         AT "2: ctc.characters is missing: the file with a character a line"},
        {"outputs:\n- detect: {from: scores}\n",
         AT "2: detect: head boxes needs from (the scores) and boxes_from"},
        {"outputs:\n- detect: {head: yolov8, boxes_from: b}\n",
         AT "2: detect.boxes_from goes with head: boxes; the other heads hold their boxes"},
        {"outputs:\n- text_boxes:\n- detect: {from: a, boxes_from: b}\n",
         AT "3: there is another output \"scores\" in line 2: give one a name of its own"},
        {"model_outputs: maybe\n", AT "1: model_outputs: \"maybe\" is none of shown|hidden"},
        {"inputs: &a\n- text:\n", AT "1: anchors and aliases are not read"},
        {"inputs: !x\n- text:\n", AT "1: tags are not read"},
        {"inputs:\n- text:\n---\ninputs:\n- text:\n", AT "3: a second document begins here"},
        {"[[[[[[[[[[", AT "1: nested too deep"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) refuses(CASES[i][0], CASES[i][1]);
}

/* Each key with what it needs, and without. */
static void a_key_without_effect_is_an_error(void **state) {
    (void)state;
    static const struct {
        const char *section, *needed, *other, *key, *says;
    } CASES[] = {
        {"image", "fit: stretch", "fit: limit", "width: 5",
         "has no effect with this fit; it goes with fit: stretch, letterbox, crop and height"},
        {"image", "fit: height", "fit: none", "height: 5",
         "has no effect with this fit; it goes with fit: stretch, letterbox, crop and height"},
        {"image", "fit: crop", "fit: letterbox", "shorter: 5",
         "has no effect with this fit; it goes with fit: crop"},
        {"image", "fit: height", "fit: limit", "max_width: 5",
         "has no effect with this fit; it goes with fit: height"},
        {"image", "fit: limit", "fit: height", "max_side: 5",
         "has no effect with this fit; it goes with fit: limit"},
        {"image", "fit: limit", "fit: stretch", "multiple: 5",
         "has no effect with this fit; it goes with fit: height and limit"},
        {"image", "fit: letterbox", "fit: stretch", "pad: 5",
         "has no effect with this fit; it goes with fit: letterbox and crop"},
        {"image", "fit: stretch", "fit: none", "resize: nearest",
         "has no effect with fit: none; nothing is resized then"},
        {"image", "fit: limit", "fit: none", "jpeg_scaling: true",
         "has no effect with fit: none; pictures are decoded at their own size then"},
        {"detect", "{from: a, boxes_from: b", "{head: yolov5", "form: corners",
         "goes with head: boxes; the other heads have the form centre"},
        {"detect", "{from: a, boxes_from: b", "{head: yolov8", "background: true",
         "goes with head: boxes; the other heads have no background"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char yaml[200], wanted[300];
        const bool is_input = strcmp(CASES[i].section, "image") == 0;
        static const char INPUT[] = "inputs:\n- %s:\n    %s\n    %s\n";
        static const char OUTPUT[] = "outputs:\n- %s: %s,\n\n   %s}\n";
        (void)snprintf(yaml, sizeof yaml, is_input ? INPUT : OUTPUT, CASES[i].section, CASES[i].needed,
                       CASES[i].key);
        if (parse(yaml) != ST_OK) fail_msg("%s\n%s", yaml, err.text);
        file.input_count = 99;
        (void)snprintf(yaml, sizeof yaml, is_input ? INPUT : OUTPUT, CASES[i].section, CASES[i].other,
                       CASES[i].key);
        (void)snprintf(wanted, sizeof wanted, AT "4: %s.%.*s %s", CASES[i].section,
                       (int)strcspn(CASES[i].key, ":"), CASES[i].key, CASES[i].says);
        refuses(yaml, wanted);
    }
    assert_int_equal(parse("inputs:\n- image: {fit: none, jpeg_scaling: false}\n"), ST_OK);
}

static void a_file_that_is_not_there_is_named(void **state) {
    (void)state;
    assert_int_equal(pipeline_load("no/such.yaml", &arena, &file, &err), ST_NOT_FOUND);
    assert_string_equal(err.text, "no/such.yaml: No such file or directory");
}

/* docs/pipeline.md names every key and its default. */
static void the_page_names_every_key(void **state) {
    (void)state;
    FILE *page = fopen(TEST_SOURCE_DIR "/docs/pipeline.md", "rb");
    assert_non_null(page);
    enum { PAGE_BYTES = 1 << 20 };
    static char text[PAGE_BYTES];
    assert_true(fread(text, 1, PAGE_BYTES - 1, page) > 0);
    (void)fclose(page);
    struct pipeline_key_info key;
    size_t count = 0;
    for (; pipeline_key(count, &key); count++) {
        char heading[80], row[80];
        (void)snprintf(heading, sizeof heading, "### `%s`", key.section);
        (void)snprintf(row, sizeof row, "| `%s` |", key.key);
        const char *section = strstr(text, heading);
        assert_non_null(section);
        const char *end = strstr(section + strlen(heading), "\n### "), *found = strstr(section, row);
        if (found == NULL || (end != NULL && found > end)) fail_msg("%s: no row %s", heading, row);
    }
    assert_true(count > 60);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_detector_is_read_in_both_styles),
        TEST(a_kind_without_keys_has_its_defaults),
        TEST(model_outputs_are_shown_where_nothing_is_made_of_them),
        TEST(files_are_beside_the_pipeline_unless_absolute),
        TEST(every_mistake_is_named_with_its_line_and_key),
        TEST(a_key_without_effect_is_an_error),
        TEST(a_file_that_is_not_there_is_named),
        TEST(the_page_names_every_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
