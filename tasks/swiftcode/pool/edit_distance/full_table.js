const [first, second] = require("fs").readFileSync(0, "utf8").trim().split(/\s+/);
const table = Array.from({ length: first.length + 1 }, () => new Array(second.length + 1).fill(0));
for (let i = 0; i <= first.length; i++) table[i][0] = i;
for (let j = 0; j <= second.length; j++) table[0][j] = j;
for (let i = 1; i <= first.length; i++) {
  const above = table[i - 1];
  const row = table[i];
  for (let j = 1; j <= second.length; j++) {
    if (first[i - 1] === second[j - 1]) {
      row[j] = above[j - 1];
    } else {
      row[j] = 1 + Math.min(above[j], row[j - 1], above[j - 1]);
    }
  }
}
console.log(String(table[first.length][second.length]));
