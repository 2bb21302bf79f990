const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const n = data[0];
const neighbours = Array.from({ length: n + 1 }, () => []);
for (let i = 2; i < data.length; i += 3) neighbours[data[i]].push([data[i + 1], data[i + 2]]);

const heap = [[0, 1]];

function push(entry) {
  let i = heap.length;
  heap.push(entry);
  while (i > 0) {
    const parent = (i - 1) >> 1;
    if (heap[parent][0] <= entry[0]) break;
    heap[i] = heap[parent];
    i = parent;
  }
  heap[i] = entry;
}

function pop() {
  const top = heap[0];
  const last = heap.pop();
  if (heap.length 