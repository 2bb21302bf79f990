const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const [n] = data;
const values = data.slice(2, n + 2);
const sums = [];
for (let query = n + 2; query < data.length; query += 2) {
  let sum = 0;
  for (let i = data[query] - 1; i < data[query + 1]; i++) sum += values[i];
  sums.push(sum);
}
console.log(sums.join("\n"));
