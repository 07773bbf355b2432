// Writes src/prep/unicode_ranges.h and unicode_decomposition.h: what Hugging Face's tokenizers library believes about every
// code point, asked of the library itself. Its parts carry tables of different Unicode versions
// (the categories are years older than the lower-casing), so no single Unicode library agrees
// with it. Run again when the pinned version of the npm package changes:
//
//     node test/oracle/unicode_tables.mjs .deps/npm/node_modules src/prep
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const modules = path.resolve(process.argv[2] ?? '.deps/npm/node_modules');
const require = createRequire(path.join(modules, 'x.js'));
const hf = require('tokenizers');
const version = require('tokenizers/package.json').version;

const LAST = 0x10ffff;
const isScalar = (cp) => cp < 0xd800 || cp > 0xdfff;
const bert = (on) => hf.bertNormalizer({
  cleanText: false, handleChineseChars: false, stripAccents: false, lowercase: false, ...on });
const clean = bert({ cleanText: true });
const chinese = bert({ handleChineseChars: true });
const strip = bert({ stripAccents: true });
const nfd = hf.nfdNormalizer();
const lower = hf.lowercase();
const split = hf.bertPreTokenizer();
const points = (s) => [...s].map((c) => c.codePointAt(0));
const isHangul = (cp) => cp >= 0xac00 && cp <= 0xd7a3;

const sets = { control: [], whitespace: [], punctuation: [], chinese: [], mark: [], word: [] };
const lowers = [];
const decompositions = [];
const nonStarters = [];

// True when the library swaps the two: both have a combining class and a's is the larger.
const swaps = (a, b) => nfd.normalizeString('x' + a + b) !== 'x' + nfd.normalizeString(a) + nfd.normalizeString(b);

for (let cp = 0; cp <= LAST; cp++) {
  if (!isScalar(cp)) continue;
  const c = String.fromCodePoint(cp);
  const cleaned = clean.normalizeString('a' + c + 'a');
  if (cleaned === 'aa') sets.control.push(cp);
  const pieces = split.preTokenizeString('a' + c + 'b').map((p) => p[0]);
  if (pieces.length === 2) sets.whitespace.push(cp);
  if (pieces.length === 3) sets.punctuation.push(cp);
  if ((cleaned === 'a a') !== (pieces.length === 2) && cleaned !== 'aa')
    throw new Error(`two kinds of white space: ${cp.toString(16)}`);
  if (chinese.normalizeString('a' + c + 'a') !== 'a' + c + 'a') sets.chinese.push(cp);
  const low = lower.normalizeString(c);
  if (low !== c) lowers.push([cp, points(low)]);
  const parts = nfd.normalizeString(c);
  if (parts !== c && !isHangul(cp)) decompositions.push([cp, points(parts)]);
  if (parts === c) {
    if (strip.normalizeString('a' + c) === 'a') sets.mark.push(cp);
    if (swaps('\u0301', c) || swaps(c, '\u0316')) nonStarters.push(cp);
  }
}

// The combining classes only matter by their order: rank them 1, 2, ...
const str = (cp) => String.fromCodePoint(cp);
const compare = (a, b) => (swaps(str(a), str(b)) ? 1 : swaps(str(b), str(a)) ? -1 : 0);
const ordered = [...nonStarters].sort((a, b) => compare(a, b) || a - b);
const rank = new Map();
let current = 0;
ordered.forEach((cp, i) => {
  if (i === 0 || compare(ordered[i - 1], cp) !== 0) current++;
  rank.set(cp, current);
});

// \w of the regex crate, which decides what "single_word" means.
const tokenizer = hf.Tokenizer.fromString(JSON.stringify({
  version: '1.0', truncation: null, padding: null,
  added_tokens: [{ id: 1, content: 'zzz', single_word: true, lstrip: false, rstrip: false,
    normalized: false, special: false }],
  normalizer: null, pre_tokenizer: { type: 'BertPreTokenizer' }, post_processor: null, decoder: null,
  model: { type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##',
    max_input_chars_per_word: 100, vocab: { '[UNK]': 0 } } }));
for (let from = 0; from <= LAST; from += 16384) {
  const cps = Array.from({ length: 16384 }, (_, i) => from + i).filter((cp) => cp <= LAST && isScalar(cp));
  const encodings = await tokenizer.encodeBatch(cps.map((cp) => 'zzz' + str(cp)));
  cps.forEach((cp, i) => { if (!encodings[i].getIds().includes(1)) sets.word.push(cp); });
}

const hex = (n) => '0x' + n.toString(16);
const wrap = (items) => {
  const lines = [];
  let line = '   ';
  for (const item of items) {
    if (line.length + item.length + 2 > 100) { lines.push(line); line = '   '; }
    line += ' ' + item + ',';
  }
  lines.push(line);
  return lines.join('\n');
};
const ranges = (cps, value = () => 1) => {
  const out = [];
  for (const cp of cps) {
    const last = out.at(-1);
    // A range may run across the surrogates: no text holds one.
    if (last && (last[1] + 1 === cp || (last[1] === 0xd7ff && cp === 0xe000)) && last[2] === value(cp)) last[1] = cp;
    else out.push([cp, cp, value(cp)]);
  }
  return out;
};
const lowerRuns = [];
for (const [cp, to] of lowers.filter(([, t]) => t.length === 1)) {
  const last = lowerRuns.at(-1);
  const delta = to[0] - cp;
  const step = last && cp - last.last;
  if (last && delta === last.delta && (step === 1 || step === 2) && (last.step === 0 || last.step === step)) {
    last.last = cp; last.step = step;
  } else lowerRuns.push({ first: cp, last: cp, step: 0, delta });
}
const longLowers = lowers.filter(([, t]) => t.length > 1);
if (longLowers.length !== 1 || longLowers[0][0] !== 0x130) throw new Error('U+0130 is not alone');

const head = `/* Generated by test/oracle/unicode_tables.mjs from the npm package tokenizers ${version}; not
 * written by hand. What that library believes about each code point; included by
 * unicode_table.c and by nothing else. */
`;
const table = (comment, type, name, items) =>
  `\n${comment ? `/* ${comment} */\n` : ''}static const ${type} ${name}[] = {\n${wrap(items)}\n};\n`;
const set = (comment, name, cps) =>
  table(comment, 'struct code_range', name, ranges(cps).map(([a, b]) => `{${hex(a)},${hex(b)}}`));
const out = path.resolve(process.argv[3] ?? 'src/prep');
writeFileSync(path.join(out, 'unicode_ranges.h'), head
  + set('Removed by clean_text.', 'CONTROL', sets.control)
  + set('', 'WHITESPACE', sets.whitespace)
  + set('A piece of its own.', 'PUNCTUATION', sets.punctuation)
  + set('', 'CHINESE', sets.chinese)
  + set('Removed by strip_accents after decomposition.', 'MARK', sets.mark)
  + set('\\w of a regular expression: what single_word looks at.', 'WORD', sets.word)
  + table('Combining classes by rank: only their order matters.', 'struct class_range', 'COMBINING',
    ranges(nonStarters, (cp) => rank.get(cp)).map(([a, b, r]) => `{${hex(a)},${hex(b)},${r}}`))
  + table('first, last, step, what to add; U+0130 (to i and U+0307) is in the code.',
    'struct lower_range', 'LOWER',
    lowerRuns.map((r) => `{${hex(r.first)},${hex(r.last)},${r.step || 1},${r.delta}}`)));
writeFileSync(path.join(out, 'unicode_decomposition.h'), head
  + table('Full canonical decompositions without Hangul: code point, count, parts.', 'uint32_t',
    'DECOMPOSITION', decompositions.flatMap(([cp, to]) => [hex(cp), String(to.length), ...to.map(hex)])));
