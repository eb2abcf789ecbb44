// Makes garbage, compresses, starts workers and a process, and prints sums that do not depend on time.
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto');
const zlib = require('zlib');

function churn(seed) {
    const map = new Map();
    let state = seed, sum = 0;
    for (let i = 0; i < 300000; i++) {
        state = (state * 1103515245 + 12345) % 2147483648;
        const key = 'k' + state % 20000;
        if (map.has(key)) sum += map.get(key).bytes.length;
        map.set(key, { i, bytes: Buffer.alloc(state % 300, i % 256), text: key.repeat(state % 5) });
        if (i % 7 === 0) map.delete('k' + i % 20000);
    }
    const hash = crypto.createHash('sha256');
    for (const key of [...map.keys()].sort()) hash.update(key).update(map.get(key).bytes);
    return sum + ' ' + hash.digest('hex');
}

function squeeze() {
    const text = Buffer.from(Array.from({ length: 200000 }, (_, i) => (i * 7919 % 1009).toString(36)).join(' '));
    const packed = [zlib.deflateSync(text), zlib.gzipSync(text, { level: 9 }), zlib.brotliCompressSync(text)];
    const back = [zlib.inflateSync(packed[0]), zlib.gunzipSync(packed[1]), zlib.brotliDecompressSync(packed[2])];
    return packed.map(p => p.length).join() + ' ' + back.every(b => b.equals(text));
}

if (!isMainThread) {
    parentPort.postMessage(churn(workerData));
} else {
    const workers = [1, 2, 3, 4].map(seed => new Promise((resolve, reject) =>
        new Worker(__filename, { workerData: seed }).on('message', resolve).on('error', reject)));
    console.log(churn(5));
    console.log(squeeze());
    console.log(require('child_process').execFileSync(process.execPath, ['-p', '[1, 2, 3].map(x => x * x).join()']).toString().trim());
    Promise.all(workers).then(sums => { sums.forEach(sum => console.log(sum)); console.log('done'); });
}
