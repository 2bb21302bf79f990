const [first, second] = require("fs").readFileSync(0, "utf8").trim().split(/\s+/);
let above = Array.from({ length: second.length + 1 }, (_, j) => j);
let row = new Array(second.length + 1).fill(0);
for (let i = 1; i <= first.length; i++) {
  row[0] = i;
  for (let j = 1; j <= second.length; j++) {
    if (first[i - 1] === second[j - 1]) {
      row[j] = above[j - 1];
    } else {
      row[j] = 1 + Math.min(above[j], row[j - 1], above[j - 1]);
    }
  }
  [above, row] = [row, above];
}
console.log(String(above[second.length]));
