// Compares our splitters with the pre-tokenizers of Hugging Face's own library, piece by piece:
//
//     node test/oracle/splitter_oracle.mjs BUILD_DIRECTORY [--all] [--modules NODE_MODULES]
//
// Every kind with every setting, alone and in sequences; regular expressions over every code point
// (whose sets are PCRE2's or ours) and over random texts, the well-known ones among them. Without
// --all: a sample. Exit 0: no difference; 1: differences, the first ones printed; 77: the npm
// package is missing.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { hf, isAll, program as built, randomNumbers, scratchFile as file } from './hugging_face.mjs';

const program = built('oracle_prep_split_texts');

// ---- texts ----
const random = randomNumbers();
const str = String.fromCodePoint;
const isScalar = (cp) => cp < 0xd800 || cp > 0xdfff;
const PIECES = ["'s", "'S", "'\u017f", "'t", "'re", "'VE", "'m", "'LL", "'ll", "'d", "'", "''", ' ', ' ', '  ', '\n', '\r\n',
  '\t', '\u00a0', '\u3000', '\u2028', '\u180e', '\u200b', '/', '//', '123', '4567', '\u0661\u0662', '\u00bd', '\u2167', '_', '-',
  'word', 'Word', 'WORD', 'wORD', '\u01c5', '\u02b0', '\u4e2d\u6587', '\u3042', '\u30ab', '\ud55c', '\u0301', '\u0301\u0301',
  'e\u0301', '\u0903', '\u20dd', '\u2581', '\u2581\u2581', '.', ',', '...', '!', '\u00bf', '\u3002', '$', '+', '\u20ac', '\u{1f600}',
  '\u{1d400}', '\u{10428}', 'I', '\u0130', '\u212a', '\u00df', 'A1b2', '--', '#', '\u0345', '\x00', '\x7f', '\u00ad', '\ufeff', '\ue000'];
const BLOCKS = [[0x20, 0x7f], [0x61, 0x7b], [0x41, 0x5b], [0, 0x250], [0x300, 0x530], [0x590, 0xe00], [0x1ab0, 0x2100],
  [0x2000, 0x3100], [0xa000, 0xb000], [0x10000, 0x20000], [0, 0x110000]];
function mixtures(count) {
  return Array.from({ length: count }, () => {
    let text = '';
    for (let n = random(16); n >= 0; n--) {
      if (random(3) > 0) { text += PIECES[random(PIECES.length)]; continue; }
      const [from, to] = BLOCKS[random(BLOCKS.length)];
      const cp = from + random(to - from);
      if (isScalar(cp)) text += str(cp);
    }
    return text;
  });
}
const edges = ['', ' ', '  ', 'a', '\n', ' \n ', '\n\n\n', ' \n \r\n  x', 'a  b', 'a   b', "it's", "IT'S", "x''s", '   x   ',
  'x'.repeat(3000), ' '.repeat(3000), 'A'.repeat(2000) + 'b', '\u4e2d'.repeat(1000), '\u4e2dA'.repeat(500), '1'.repeat(100),
  '\u0301'.repeat(500), '!'.repeat(500) + '\n\n/', 'aB'.repeat(400), '\n'.repeat(500) + 'x', ' \u2581 \u2581', '\u2581a b\u2581'];
const everyCode = [];
for (let from = 0; from <= 0x10ffff; from += from < 0x33000 || isAll ? 2048 : 0x20000) {
  let text = '';
  for (let cp = from; cp < from + 2048; cp++) if (isScalar(cp)) text += str(cp) + (cp % 3 ? '' : 'a');
  if (text !== '') everyCode.push(text);
}

// ---- pre-tokenizers ----
const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const CL100K = `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`;
const QWEN = CL100K.replace('{1,3}', '');
const O200K = `[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+${CONTRACTIONS}?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*${CONTRACTIONS}?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`;
const BEHAVIORS = ['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous'];
const split = (pattern, behavior = 'Isolated', invert = false) => ({ type: 'Split', pattern, behavior, invert });
const regex = (pattern, behavior, invert) => split({ Regex: pattern }, behavior, invert);
const string = (pattern, behavior, invert) => split({ String: pattern }, behavior, invert);
const byteLevel = (add_prefix_space, use_regex) => ({ type: 'ByteLevel', add_prefix_space, trim_offsets: true, use_regex });
const metaspace = (prepend_scheme, cuts = true) => ({ type: 'Metaspace', replacement: '\u2581', prepend_scheme, split: cuts });
const sequence = (...pretokenizers) => ({ type: 'Sequence', pretokenizers });
const PATTERNS = ['\\s+', '\\S+', '\\w+', '\\W', '\\d', '\\D+', '\\bw', '\\B.', '.', '^.', '.$', '\\A.', '.\\z', '[a-z]+', '[^a-z\\s]+',
  '\\p{Han}+', '[\\p{Hiragana}\\p{Katakana}]+', '\\P{L}+', '[\\P{N}a]+', '\\p{^Lu}', 'a|ab|abc', '(?=[A-Z])', '(?<=\\d)(?!\\d)', '', 'x*',
  '\\p{N}{1,3}+', 'a{2}', 'a{,2}', 'a{1,}?b', '[\\x{4e00}-\\x{9fff}]', '\\u3042', '\\v', '[\\s\\d]+', '(?i:word)', "(?i)'d|'m",
  '\\s?+\\p{P}', '(?>\\s+)\\w', "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
  '\\p{L}+|\\p{M}|\\p{S}|\\p{Z}+', '[-a]+', '[a\\-]', '[.,!]', '\\.', '{', 'a{', '(a|b)+', '\\p{Nd}', ' ?\\p{Ll}+'];
const WELL_KNOWN = { gpt2: GPT2, cl100k: CL100K, qwen: QWEN, o200k: O200K };
const CATEGORIES = ['L', 'M', 'N', 'P', 'S', 'Z', 'Lu', 'Ll', 'Lt', 'Lm', 'Lo', 'Mn', 'Mc', 'Me', 'Nd', 'Nl', 'No', 'Pc', 'Pd', 'Ps', 'Pe',
  'Pi', 'Pf', 'Po', 'Sm', 'Sc', 'Sk', 'So', 'Zs', 'Zl', 'Zp', 'Cc', 'Cf', 'Co', 'Han', 'Hiragana', 'Katakana', 'Hangul', 'Latin', 'Cyrillic',
  'Greek', 'Arabic', 'Hebrew', 'Thai', 'Devanagari'];

function cases() {
  const mix = [...edges, ...mixtures(isAll ? 3000 : 100)];
  const much = [...edges, ...mixtures(isAll ? 40000 : 3000)];
  const named = (kind, texts, sections) => sections.map((section) => [kind, section, texts]);
  const both = [...mix, ...everyCode];
  return [
    ...named('characters', both, [{ type: 'BertPreTokenizer' }, { type: 'Whitespace' }, { type: 'WhitespaceSplit' },
      { type: 'Digits', individual_digits: true }, { type: 'Digits', individual_digits: false }, { type: 'Punctuation' },
      { type: 'CharDelimiterSplit', delimiter: 'a' }, { type: 'CharDelimiterSplit', delimiter: '\u2581' },
      { type: 'FixedLength', length: 5 }, { type: 'FixedLength', length: 1 }]),
    ...named('behaviors', mix, BEHAVIORS.flatMap((b) => [{ type: 'Punctuation', behavior: b }, string(' ', b), string(' ', b, true),
      string('...', b), regex('\\s', b), regex('\\w+', b, true), regex('', b), regex('x*|\\d', b), string('', b), regex(GPT2, b),
      regex(GPT2, b, true), regex(CL100K, b, true)])),
    ...named('ByteLevel', both, [byteLevel(false, true), byteLevel(true, true), byteLevel(false, false), byteLevel(true, false)]),
    ...named('Metaspace', mix, ['always', 'first', 'never'].flatMap((s) => [metaspace(s), metaspace(s, false)])),
    ...named('Metaspace', mix, [{ type: 'Metaspace', replacement: '_', add_prefix_space: true }, { type: 'Metaspace', replacement: '\u2581',
      str_rep: '\u2581', add_prefix_space: false, prepend_scheme: 'never' }]),
    ...named('sequences', mix, [sequence(), sequence({ type: 'WhitespaceSplit' }, metaspace('always')),
      sequence({ type: 'WhitespaceSplit' }, metaspace('first')), sequence(metaspace('first', false), { type: 'Digits', individual_digits: true }),
      sequence({ type: 'Digits', individual_digits: true }, byteLevel(false, true)), sequence(regex(CL100K), byteLevel(false, false)),
      sequence(regex(O200K), byteLevel(true, false)), sequence({ type: 'Punctuation' }, byteLevel(true, true)),
      sequence(sequence({ type: 'Whitespace' }, metaspace('never')), metaspace('always'), byteLevel(true, true)),
      sequence(byteLevel(false, true), { type: 'WhitespaceSplit' }), sequence({ type: 'BertPreTokenizer' }, { type: 'Punctuation',
        behavior: 'Contiguous' }, { type: 'FixedLength', length: 3 }),
      sequence(regex('\\p{N}{1,3}'), regex('[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+'), regex(CL100K), byteLevel(false, false))]),
    ...named('properties', everyCode, CATEGORIES.map((c) => regex(`\\p{${c}}+`))),
    ...named('regular expressions', mix, PATTERNS.map((p) => regex(p))),
    ...named('regular expressions', everyCode, ['\\s+', '\\w+', '\\d+', '\\W+', '\\bw'].map((p) => regex(p))),
    ...Object.entries(WELL_KNOWN).flatMap(([name, p]) => named(name, [...much, ...everyCode], [regex(p)])),
  ];
}

// ---- comparison ----
function ours(section, texts) {
  writeFileSync(file('section.json'), JSON.stringify(section));
  const chunks = [];
  for (const text of texts) {
    const bytes = Buffer.from(text, 'utf8');
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    chunks.push(length, bytes);
  }
  writeFileSync(file('texts'), Buffer.concat(chunks));
  const { status, stdout, stderr } = spawnSync(program, [file('section.json'), file('texts'), file('out')], { encoding: 'utf8' });
  if (status !== 0) return { problem: stderr.trim() };
  const bytes = readFileSync(file('out'));
  let at = 0;
  const word = () => { at += 4; return bytes.readUInt32LE(at - 4); };
  const pieces = texts.map(() => Array.from({ length: word() }, () => {
    const size = word();
    at += size;
    return bytes.subarray(at - size, at);
  }));
  return { pieces, isByteLevel: stdout.trim() === '1' };
}
// The 256 characters that stand for bytes.
const byteOf = new Map();
for (let byte = 0, extra = 0; byte < 256; byte++) {
  const isPlain = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  byteOf.set(isPlain ? byte : 256 + extra++, byte);
}
const unmapped = (piece) => Buffer.from([...piece].map((c) => byteOf.get(c.codePointAt(0))));
const preTokenizer = (section) => hf.Tokenizer.fromString(JSON.stringify({
  version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer: null,
  pre_tokenizer: section, post_processor: null, decoder: null,
  model: { type: 'WordLevel', vocab: { a: 0 }, unk_token: 'a' } })).getPreTokenizer();

function compare(section, texts) {
  const { problem, pieces, isByteLevel } = ours(section, texts);
  const name = JSON.stringify(section).slice(0, 160);
  if (problem !== undefined) {
    console.log(`  ${name}: ${problem}`);
    return texts.length;
  }
  const theirs = preTokenizer(section);
  let differences = 0;
  texts.forEach((text, i) => {
    // A sequence of none leaves the empty piece of an empty text, which has no tokens.
    const want = theirs.preTokenizeString(text).filter(([piece]) => piece !== '').map(([piece]) => (isByteLevel ? unmapped(piece) : Buffer.from(piece)));
    const isSame = want.length === pieces[i].length && want.every((piece, k) => piece.equals(pieces[i][k]));
    if (isSame || differences++ >= 2) return;
    const at = want.findIndex((piece, k) => pieces[i][k] === undefined || !piece.equals(pieces[i][k]));
    const show = (list) => JSON.stringify(list.slice(Math.max(0, at - 1), at + 3).map(String)).slice(0, 300);
    console.log(`  ${name}\n    text   ${JSON.stringify(text).slice(0, 200)}\n    theirs ${show(want)}\n    ours   ${show(pieces[i])}`);
  });
  return differences;
}

const counts = new Map();
for (const [kind, section, texts] of cases()) {
  const differences = compare(section, texts);
  const [same, different] = counts.get(kind) ?? [0, 0];
  counts.set(kind, [same + texts.length - differences, different + differences]);
}
let isSame = true;
for (const [kind, [same, different]] of counts) {
  console.log(`splitter, ${kind}: ${same} same, ${different} different`);
  isSame = isSame && different === 0;
}
process.exit(isSame ? 0 : 1);
