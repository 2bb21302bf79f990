const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const n = data[0];
const distance = new Array(n + 1).fill(Infinity);
distance[1] = 0;
for (let round = 1; round < n; round++) {
  for (let i = 2; i < data.length; i += 3) {
    const through = distance[data[i]] + data[i + 2];
    if (through < distance[data[i + 1]]) distance[data[i + 1]] = through;
  }
}
console.log(distance.slice(1).map((d) => (d === Infinity ? -1 : d)).join(" "));
