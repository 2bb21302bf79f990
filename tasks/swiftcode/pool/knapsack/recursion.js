const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const [n, capacity] = data;
const known = new Map();

function best(i, room) {
  if (i === n) return 0;
  const key = i * (capacity + 1) + room;
  if (known.has(key)) return known.get(key);
  let result = best(i + 1, room);
  const weight = data[2 + 2 * i];
  if (weight <= room) result = Math.max(result, data[3 + 2 * i] + best(i + 1, room - weight));
  known.set(key, result);
  return result;
}

console.log(String(best(0, capacity)));
