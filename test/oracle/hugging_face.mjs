// What the oracles that compare with Hugging Face's tokenizers library share: their arguments, the
// library, a scratch folder, random numbers. Ends the process with 77 where the npm package is not
// installed, with 2 where the program that the script drives is not built.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const option = (name, fallback) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? fallback : process.argv[at + 1];
};
export const isAll = process.argv.includes('--all');
export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const modules = path.resolve(option('modules', path.join(root, '.deps/npm/node_modules')));
if (process.argv.length < 3 || process.argv[2].startsWith('-')) {
  console.error(`usage: ${path.basename(process.argv[1])} BUILD_DIRECTORY [--all] [--modules NODE_MODULES]`);
  process.exit(2);
}
export let hf;
try {
  hf = createRequire(path.join(modules, 'x.js'))('tokenizers');
} catch (error) {
  console.log(`skipped: ${error.message.split('\n')[0]} (make test installs it; or --modules DIR)`);
  process.exit(77);
}
export function program(name) {
  const file = path.resolve(process.argv[2], name);
  if (existsSync(file)) return file;
  console.error(`${file} is not built: cmake --build ${process.argv[2]} --target ${name}`);
  process.exit(2);
}

const scratch = mkdtempSync(path.join(tmpdir(), 'oracle-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
export const scratchFile = (name) => path.join(scratch, name);

// xorshift32 from 1: the same numbers every time, from 0 to below - 1.
export function randomNumbers() {
  let seed = 1;
  return (below) => {
    seed ^= seed << 13; seed ^= seed >>> 17; seed ^= seed << 5;
    return (seed >>> 0) % below;
  };
}
export const isScalar = (cp) => cp < 0xd800 || cp > 0xdfff;
