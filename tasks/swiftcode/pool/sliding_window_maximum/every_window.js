const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const [n, k] = data;
const values = data.slice(2);
const maxima = [];
for (let start = 0; start + k <= n; start++) {
  let maximum = values[start];
  for (let i = start + 1; i < start + k; i++) {
    if (values[i] > maximum) maximum = values[i];
  }
  maxima.push(maximum);
}
console.log(maxima.join(" "));
