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
  if (heap.length === 0) return top;
  let i = 0;
  for (;;) {
    let child = 2 * i + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && heap[child + 1][0] < heap[child][0]) child++;
    if (heap[child][0] >= last[0]) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = last;
  return top;
}

const distance = new Array(n + 1).fill(Infinity);
distance[1] = 0;
while (heap.length > 0) {
  const [soFar, node] = pop();
  if (soFar > distance[node]) continue;
  for (const [end, length] of neighbours[node]) {
    if (soFar + length < distance[end]) {
      distance[end] = soFar + length;
      push([distance[end], end]);
    }
  }
}
console.log(distance.slice(1).map((d) => (d === Infinity ? -1 : d)).join(" "));
