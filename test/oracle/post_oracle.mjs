// Compares post-processors, pairs, truncation and the special mask with Hugging Face's tokenizers
// library: ids, type ids, offsets and mask, for a WordPiece and a byte-level vocabulary made up
// here.
//
//     node test/oracle/post_oracle.mjs BUILD_DIRECTORY [--all]
//
// Exit 77: the package is not installed.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { hf, isAll as all, program as built, randomNumbers, scratchFile } from './hugging_face.mjs';

const count = all ? 1000 : 30; // all: every truncation; else half of them
const program = built('oracle_prep_encode_texts');

const random = randomNumbers();
const WORDS = ['a', 'ab', 'abc', ' ', '  ', ' b', 'c ', '\u00e9', '\u4e2d', '[M]', ' [M] ', '\n', 'x', '<t> ', ' <t>', '\u{1f600}', ','];
const text = () => Array.from({ length: random(14) }, () => WORDS[random(WORDS.length)]).join('');
const texts = ['', '', '', 'a', 'a', '', ' ', ' a ', 'a b c', 'a b c d e f g h'];
while (texts.length < 2 * count) texts.push(text());

const special = { c: { id: 'c', ids: [90], tokens: ['c'] }, s: { id: 's', ids: [91, 92], tokens: ['s', 's2'] } };
const S = (id, type_id) => ({ SpecialToken: { id, type_id } });
const Q = (id, type_id) => ({ Sequence: { id, type_id } });
const template = (single, pair) => ({ type: 'TemplateProcessing', single, pair, special_tokens: special });
const bert = { type: 'BertProcessing', sep: ['s', 91], cls: ['c', 90] };
const roberta = (trim_offsets, add_prefix_space) => ({ type: 'RobertaProcessing', sep: ['s', 91], cls: ['c', 90], trim_offsets, add_prefix_space });
const byteLevel = (trim_offsets, add_prefix_space) => ({ type: 'ByteLevel', trim_offsets, add_prefix_space, use_regex: true });
const usual = template([S('c', 0), Q('A', 0), S('s', 0)], [S('c', 0), Q('A', 0), S('s', 0), Q('B', 1), S('s', 1)]);
const POSTS = {
  none: null, Bert: bert, Template: usual,
  'Template odd': template([Q('A', 3), S('s', 2), Q('A', 1)], [Q('B', 5), S('c', 4), Q('A', 1), Q('A', 2)]),
  'Roberta': roberta(true, true), 'Roberta without prefix': roberta(true, false), 'Roberta untrimmed': roberta(false, true),
  ByteLevel: byteLevel(true, true), 'ByteLevel without prefix': byteLevel(true, false), 'ByteLevel untrimmed': byteLevel(false, false),
  'ByteLevel, Template': { type: 'Sequence', processors: [byteLevel(true, true), usual] },
  'Template, ByteLevel': { type: 'Sequence', processors: [usual, byteLevel(true, true)] },
  'Bert, ByteLevel': { type: 'Sequence', processors: [bert, byteLevel(true, true)] },
  'Roberta, Template, Bert': { type: 'Sequence', processors: [roberta(true, true), usual, bert] },
};
const cut = (max_length, strategy, direction = 'Right', stride = 0) => ({ max_length, strategy, direction, stride });
const CUTS = {
  whole: null, longest: cut(9, 'LongestFirst'), 'longest, odd': cut(12, 'LongestFirst'), 'longest, left': cut(10, 'LongestFirst', 'Left'),
  first: cut(11, 'OnlyFirst'), 'second, left': cut(11, 'OnlySecond', 'Left'), second: cut(14, 'OnlySecond'), tight: cut(7, 'LongestFirst'),
};
const added = ['[M]', '<t>'].map((content, i) => ({ id: 80 + i, content, single_word: false, lstrip: i === 1, rstrip: i === 1, normalized: false, special: true }));
const entries = (list) => Object.fromEntries(list.map((t, i) => [t, i]));
const letters = 'abcdefghijklmnopqrstuvwxyz,\u00c3\u00a9\u00e4\u00b8\u0143\u00f0\u0141\u013a\u0122\u010a\u0120'.split('');
const BASES = {
  WordPiece: { normalizer: { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true },
    pre_tokenizer: { type: 'BertPreTokenizer' },
    model: { type: 'WordPiece', unk_token: '?', continuing_subword_prefix: '##', max_input_chars_per_word: 100, vocab: entries(['?', 'a', '##b', '##c', 'b', 'c', 'x', 'e', ',', '\u4e2d']) } },
  'byte-level': { normalizer: null, pre_tokenizer: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: { type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null, end_of_word_suffix: null, fuse_unk: false, byte_fallback: false,
      vocab: entries([...letters, 'ab', '\u0120a', '\u0120\u0120']), merges: ['a b', '\u0120 a', '\u0120 \u0120'] } },
};

const pack = (list) => Buffer.concat(list.flatMap((t) => {
  const bytes = Buffer.from(t, 'utf8');
  const size = Buffer.alloc(4);
  size.writeUInt32LE(bytes.length);
  return [size, bytes];
}));
writeFileSync(scratchFile('texts'), pack(texts));
const pairs = Array.from({ length: texts.length / 2 }, (_, i) => [texts[2 * i], texts[2 * i + 1]]);
const refused = '(refused)';

async function theirs(tokenizer, input, bare) {
  try {
    const e = await tokenizer.encode(input[0], input[1] ?? null, { addSpecialTokens: !bare });
    return JSON.stringify([e.getIds(), e.getTypeIds(), e.getOffsets(), e.getSpecialTokensMask()]);
  } catch { return refused; }
}

let different = 0;
for (const [baseName, base] of Object.entries(BASES)) for (const isPair of [false, true]) {
  let same = 0, bad = 0, skipped = 0;
  for (const [postName, post_processor] of Object.entries(POSTS)) for (const [cutName, truncation] of Object.entries(CUTS).filter((_, i) => all || i % 2 === 0)) {
    // Less than the special tokens: the library's subtraction wraps around and nothing is cut.
    if (isPair && postName === 'Roberta, Template, Bert' && truncation?.max_length < 12) continue;
    const file = { version: '1.0', truncation, padding: null, added_tokens: added, ...base, post_processor, decoder: null };
    const json = scratchFile('file.json');
    writeFileSync(json, JSON.stringify(file));
    let tokenizer;
    try { tokenizer = hf.Tokenizer.fromString(JSON.stringify(file)); } catch { skipped++; continue; }
    for (const bare of [false, true]) for (const offsets of [true, false]) {
      let out;
      try {
        execFileSync(program, [json, scratchFile('texts'), scratchFile('out'), '0',
          ...(isPair ? ['pairs'] : []), ...(bare ? ['bare'] : []), ...(offsets ? ['offsets'] : [])], { stdio: ['ignore', 'ignore', 'pipe'] });
        out = readFileSync(scratchFile('out'));
      } catch (e) {
        if (bad++ < 8) console.log(`  ${baseName}, ${postName}, ${cutName}: ${String(e.stderr).split('\n')[0]}`);
        continue;
      }
      let at = 0;
      const word = () => { at += 4; return out.readUInt32LE(at - 4); };
      for (const input of isPair ? pairs : texts.map((t) => [t])) {
        let mine = refused;
        const n = word();
        if (n !== 0xffffffff) {
          word();
          const list = () => Array.from({ length: n }, word);
          const ids = list(), types = list();
          const places = offsets ? Array.from({ length: n }, () => [word(), word()]) : null;
          mine = JSON.stringify([ids, types, places, offsets ? list() : null]);
        }
        let expected = await theirs(tokenizer, input, bare);
        if (!offsets && expected !== refused) {
          const [ids, types] = JSON.parse(expected);
          expected = JSON.stringify([ids, types, null, null]);
        }
        if (mine === expected) same++;
        else if (bad++ < 8) console.log(`  ${baseName}, ${postName}, ${cutName}${bare ? ', bare' : ''}: ${JSON.stringify(input)}\n    ours   ${mine}\n    theirs ${expected}`);
      }
    }
  }
  different += bad;
  console.log(`post-processors, ${baseName}${isPair ? ', pairs' : ''}: ${same} same, ${bad} different`);
}
process.exit(different > 0 ? 1 : 0);
