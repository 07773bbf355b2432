// The peer of perf/peers that anybody can write in an afternoon: node:http and onnxruntime-node,
// binary tensors, requests that arrive while a run is under way share the next one. No checks, no
// trace: what a tuned Node server can do at best.
//
//     node perf/peer_node.mjs MODEL.onnx LIBRARY_DIR --port-file FILE
import { createRequire } from 'node:module';
import { createServer } from 'node:http';
import { writeFileSync } from 'node:fs';

const [modelPath, libraries, , portFile] = process.argv.slice(2);
const ort = createRequire(`${libraries}/`)('onnxruntime-node');
const session = await ort.InferenceSession.create(modelPath,
  { intraOpNumThreads: 1, interOpNumThreads: 1, executionMode: 'sequential' });
const [input] = session.inputNames;
const [output] = session.outputNames;
const MAX_BATCH = 32;
let waiting = [];
let isRunning = false;

async function runAll() {
  isRunning = true;
  while (waiting.length) {
    const batch = waiting.splice(0, MAX_BATCH);
    const width = batch[0].values.length;
    let values = batch[0].values;
    if (batch.length > 1) {
      values = new Float32Array(width * batch.length);
      batch.forEach((item, i) => values.set(item.values, i * width));
    }
    const results = await session.run({ [input]: new ort.Tensor('float32', values, [batch.length, width]) });
    const data = results[output].data;
    const size = data.length / batch.length;
    batch.forEach((item, i) => answer(item.response, data.subarray(i * size, (i + 1) * size)));
  }
  isRunning = false;
}

function answer(response, row) {
  const bytes = Buffer.from(row.buffer, row.byteOffset, row.byteLength);
  const json = Buffer.from(`{"model_name":"m","model_version":"1","outputs":[{"name":"${output}",`
    + `"datatype":"FP32","shape":[1,${row.length}],"parameters":{"binary_data_size":${bytes.length}}}]}`);
  response.writeHead(200, { 'Content-Type': 'application/octet-stream',
    'Inference-Header-Content-Length': json.length, 'Content-Length': json.length + bytes.length });
  response.end(Buffer.concat([json, bytes]));
}

const server = createServer({ keepAliveTimeout: 60000 }, (request, response) => {
  const chunks = [];
  request.on('data', chunk => chunks.push(chunk));
  request.on('end', () => {
    const body = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
    const at = Number(request.headers['inference-header-content-length']);
    JSON.parse(body.toString('latin1', 0, at));
    const bytes = Uint8Array.prototype.slice.call(body, at); // aligned
    waiting.push({ values: new Float32Array(bytes.buffer, 0, bytes.length / 4), response });
    if (!isRunning) runAll();
  });
});
server.listen(0, '127.0.0.1', 1024,
  () => writeFileSync(portFile, `http ${server.address().port}\n`));
process.on('SIGTERM', () => process.exit(0));
