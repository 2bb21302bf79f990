const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const [n] = data;
const prefix = [0];
for (let i = 0; i < n; i++) prefix.push(prefix[i] + data[i + 2]);
const sums = [];
for (let query = n + 2; query < data.length; query += 2) {
  sums.push(prefix[data[query + 1]] - prefix[data[query] - 1]);
}
console.log(sums.join("\n"));
