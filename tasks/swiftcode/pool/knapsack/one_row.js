const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const [n, capacity] = data;
const row = new Array(capacity + 1).fill(0);
for (let i = 1; i <= n; i++) {
  const weight = data[2 * i];
  const value = data[2 * i + 1];
  for (let room = capacity; room >= weight; room--) {
    row[room] = Math.max(row[room], row[room - weight] + value);
  }
}
console.log(String(row[capacity]));
