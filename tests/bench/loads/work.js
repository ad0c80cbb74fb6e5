// SPDX-License-Identifier: Apache-2.0
// Compiled code, garbage, regular expressions, JSON, compression and promises, until it is stopped.
"use strict";
const crypto = require("crypto");
const zlib = require("zlib");

class Node {
  constructor(value) {
    this.value = value;
    this.left = this.right = null;
  }
  add(value) {
    const side = value < this.value ? "left" : "right";
    if (this[side]) this[side].add(value);
    else this[side] = new Node(value);
  }
  sum() {
    return this.value + (this.left ? this.left.sum() : 0) + (this.right ? this.right.sum() : 0);
  }
}

function trees(seed) {
  const root = new Node(500);
  for (let i = 0; i < 3000; i++) root.add((seed * 7919 + i * 104729) % 1009);
  return root.sum();
}

function texts(seed) {
  const rows = Array.from({ length: 500 }, (_, i) => ({ id: i, name: `row ${i * seed}`, tags: [i, `${i}`] }));
  const text = JSON.stringify(rows);
  const back = JSON.parse(text).filter((row) => /row \d*[05]$/.test(row.name));
  back.sort((a, b) => (a.name < b.name ? -1 : 1));
  return text.replace(/"id":(\d+)/g, (_, id) => id).length + back.length;
}

function digest(seed) {
  const text = Buffer.alloc(50000, `text ${seed}`);
  return crypto.createHash("sha256").update(zlib.deflateSync(text)).digest()[0];
}

async function main() {
  let total = 0;
  for (let round = 0; total !== -1; round++) {
    total += trees(round) + texts(round) + digest(round);
    await new Promise(setImmediate);
  }
}
main();
