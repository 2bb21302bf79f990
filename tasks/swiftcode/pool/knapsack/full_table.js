const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const [n, capacity] = data;
const table = Array.from({ length: n + 1 }, () => new Array(capacity + 1).fill(0));
for (let i = 1; i <= n; i++) {
  const weight = data[2 * i];
  const value = data[2 * i + 1];
  for (let room = 0; room <= capacity; room++) {
    table[i][room] = table[i - 1][room];
    if (weight <= room) table[i][room] = Math.max(table[i][room], table[i - 1][room - weight] + value);
  }
}
console.log(String(table[n][capacity]));
