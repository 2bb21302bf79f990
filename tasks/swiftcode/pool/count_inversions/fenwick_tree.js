const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/);
const values = Float64Array.from(data.slice(1), Number);
const sorted = Float64Array.from(values).sort();
const rank = new Map();
for (const value of sorted) {
  if (!rank.has(value)) rank.set(value, rank.size + 1);
}
const tree = new Int32Array(rank.size + 1);
let count = 0;
for (let seen = 0; seen < values.length; seen++) {
  const own = rank.get(values[seen]);
  let smallerOrEqual = 0;
  for (let i = own; i > 0; i -= i & -i) smallerOrEqual += tree[i];
  count += seen - smallerOrEqual;
  for (let i = own; i < tree.length; i += i & -i) tree[i]++;
}
console.log(String(count));
