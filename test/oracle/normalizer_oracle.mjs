// Compares every normalizer, alone and in sequences, with Hugging Face's tokenizers library: the
// text, and where each code point of it came from.
//
//     node test/oracle/normalizer_oracle.mjs BUILD_DIRECTORY [--all]
//
// --all takes every code point in six contexts for each kind; without it every 61st in one.
// Exit 77: the package is not installed.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { hf, isAll as all, program as built, randomNumbers, root, scratchFile } from './hugging_face.mjs';

const program = built('oracle_prep_normalize_texts');

const random = randomNumbers();
const scalar = (cp) => cp < 0xd800 || cp > 0xdfff;
// What normal forms, marks and tables are about, and a little of everything else.
const POOL = ['a', 'e', 'Z', ' ', '  ', '\t', '\n', '\r\n', '\r', '.', '\u00e9', '\u0301', '\u0316', '\u0344', '\u0345',
  '\u1e69', '\u0323', '\u0307', '\uac00', '\uac01', '\u1100', '\u1161', '\u11a8', '\u0958', '\u0f73', '\u0f81', '\u3000',
  '\ufb01', '\ufdfa', '\uff21', '\u212b', '\u2126', '\u4e2d', '\uf900', '\u00a0', '\u200b', '\u200d', '\ufeff', '\ufffd',
  '\u0000', '\u0001', '\u007f', '\u0085', '\u00ad', '\u0130', '\u03a3', '\u1e9e', '\ud834\udd5e', '\ud83d\udc68', '\ud83c\uddeb',
  '\u2581', '\u3099', '\u304b', '\u304c', '\u0928', '\u093c', '\u094d', '\u0915', '\u2122', '\u001e', 'g', '\u09c7', '\u09be',
  '\u0dd9', '\u0dcf', '\u0dca', '\u1dc4', '\u0300', '\u0338', '\u2260', '=', '\u05e9', '\u05c1', '\u05bc', 'ab', 'aa', '-'];
const texts = ['', ' ', 'a'];
for (let cp = 0; cp <= 0x10ffff; cp += all ? 1 : 61) {
  if (!scalar(cp)) continue;
  const c = String.fromCodePoint(cp);
  texts.push('a' + c + 'b');
  if (!all) continue;
  if (cp < 0x30000 || cp >= 0xe0000 && cp < 0xe0200)
    texts.push(c, '\uff21' + c, 'x\u0301' + c + '\u0316', '\u1100' + c + '\u11a8', 'e' + c + '\u0301');
}
for (let i = 0; i < (all ? 40000 : 2500); i++) {
  let text = '';
  for (let n = 1 + random(8); n > 0; n--) {
    text += random(12) === 0 ? String.fromCodePoint(random(2) ? random(0x3100) : 0x10000 + random(0x20000))
      : POOL[random(POOL.length)];
  }
  texts.push(text);
}

const charsmap = () => {
  const file = path.join(root, 'test/data/unigram_udhr.json');
  if (!existsSync(file)) return null;
  const find = (n) => n?.type === 'Precompiled' ? n : (n?.normalizers ?? []).map(find).find(Boolean);
  return find(JSON.parse(readFileSync(file, 'utf8')).normalizer);
};
const bert = (clean_text, handle_chinese_chars, strip_accents, lowercase) =>
  ({ type: 'BertNormalizer', clean_text, handle_chinese_chars, strip_accents, lowercase });
const replace = (String, content) => ({ type: 'Replace', pattern: { String }, content });
const regex = (Regex, content) => ({ type: 'Replace', pattern: { Regex }, content });
const sequence = (...normalizers) => ({ type: 'Sequence', normalizers });
const plain = (type) => ({ type });
const KINDS = {
  none: null,
  NFC: plain('NFC'), NFD: plain('NFD'), NFKC: plain('NFKC'), NFKD: plain('NFKD'),
  Lowercase: plain('Lowercase'), StripAccents: plain('StripAccents'), Nmt: plain('Nmt'),
  ByteLevel: plain('ByteLevel'), Precompiled: charsmap(),
  Bert: bert(true, true, null, true), 'Bert cased': bert(true, true, null, false),
  'Bert accents': bert(false, true, true, false), 'Bert nothing': bert(false, false, false, false),
  Prepend: { type: 'Prepend', prepend: '\u2581' }, 'Prepend two': { type: 'Prepend', prepend: 'x\u2581' },
  'Prepend nothing': { type: 'Prepend', prepend: '' },
  Strip: { type: 'Strip', strip_left: true, strip_right: true },
  'Strip left': { type: 'Strip', strip_left: true, strip_right: false },
  'Strip right': { type: 'Strip', strip_left: false, strip_right: true },
  Replace: replace(' ', '\u2581'), 'Replace two': replace('aa', 'b'), 'Replace away': replace('a', ''),
  'Replace Regex': regex(' {2,}', ' '), 'Replace Regex marks': regex('\\p{M}+', '*'),
  'NFD, StripAccents, Lowercase': sequence(plain('NFD'), plain('StripAccents'), plain('Lowercase')),
  'NFKC, Prepend, Replace': sequence(plain('NFKC'), { type: 'Prepend', prepend: '\u2581' }, replace(' ', '\u2581')),
  'Nmt, NFKC, Strip, Replace': sequence(plain('Nmt'), plain('NFKC'), { type: 'Strip', strip_left: true, strip_right: true }, replace('a', 'xyz')),
  'Precompiled, Replace': charsmap() && sequence(charsmap(), regex(' {2,}', ' ')),
  'Lowercase, NFD, NFC': sequence(plain('Lowercase'), plain('NFD'), plain('NFC')),
};

const pack = (list) => Buffer.concat(list.flatMap((t) => {
  const bytes = Buffer.from(t, 'utf8');
  const size = Buffer.alloc(4);
  size.writeUInt32LE(bytes.length);
  return [size, bytes];
}));
writeFileSync(scratchFile('texts'), pack(texts));
const show = (s) => [...s].map((c) => c.codePointAt(0).toString(16)).join(' ');

let different = 0;
for (const [name, normalizer] of Object.entries(KINDS)) {
  if (normalizer === null && name !== 'none') { console.log(`normalizer ${name}: skipped, its data is not there`); continue; }
  const file = { version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer,
    pre_tokenizer: { type: 'Split', pattern: { Regex: '(?m:.)|\\n' }, behavior: 'Isolated', invert: false },
    post_processor: null, decoder: null,
    model: { type: 'WordLevel', vocab: { '?': 0 }, unk_token: '?' } };
  const json = scratchFile('file.json');
  writeFileSync(json, JSON.stringify(file));
  try {
    execFileSync(program, [json, scratchFile('texts'), scratchFile('out')], { stdio: ['ignore', 'inherit', 'pipe'] });
  } catch (e) {
    console.log(`normalizer ${name}: ${String(e.stderr).split("\n")[0]}`);
    different++;
    continue;
  }
  const out = readFileSync(scratchFile('out'));
  const theirs = hf.Tokenizer.fromString(JSON.stringify(file));
  const theirNormalizer = theirs.getNormalizer();
  let at = 0, same = 0, bad = 0;
  for (let from = 0; from < texts.length; from += 4096) {
    const some = texts.slice(from, from + 4096);
    const encodings = await theirs.encodeBatch(some);
    some.forEach((text, i) => {
      const size = out.readUInt32LE(at);
      const got = out.toString('utf8', at + 4, at + 4 + size);
      at += 4 + size;
      const expected = normalizer === null ? text : theirNormalizer.normalizeString(text);
      const starts = [0]; // code points before each byte
      for (const b of Buffer.from(text, 'utf8')) starts.push(starts.at(-1) + ((b & 0xc0) !== 0x80));
      const mine = [];
      for (const _ of got) {
        mine.push(`${starts[out.readUInt32LE(at)]}-${starts[out.readUInt32LE(at + 4)]}`);
        at += 8;
      }
      const offsets = encodings[i].getOffsets().map(([a, b]) => `${a}-${b}`);
      if (got === expected && mine.join() === offsets.join()) same++;
      else if (bad++ < 3) console.log(`  ${name}: ${show(text)}\n    ours   ${show(got)} ${mine}\n    theirs ${show(expected)} ${offsets}`);
    });
  }
  different += bad;
  console.log(`normalizer ${name}: ${same} same, ${bad} different`);
}
process.exit(different > 0 ? 1 : 0);
