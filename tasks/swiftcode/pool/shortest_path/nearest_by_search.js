const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const n = data[0];
const neighbours = Array.from({ length: n + 1 }, () => []);
for (let i = 2; i < data.length; i += 3) neighbours[data[i]].push([data[i + 1], data[i + 2]]);
const distance = new Array(n + 1).fill(Infinity);
const visited = new Array(n + 1).fill(false);
distance[1] = 0;
for (;;) {
  let nearest = 0;
  for (let node = 1; node <= n; node++) {
    if (!visited[node] && distance[node] < (nearest ? distance[nearest] : Infinity)) nearest = node;
  }
  if (nearest === 0) break;
  visited[nearest] = true;
  for (const [end, length] of neighbours[nearest]) {
    distance[end] = Math.min(distance[end], distance[nearest] + length);
  }
}
console.log(distance.slice(1).map((d) => (d === Infinity ? -1 : d)).join(" "));
