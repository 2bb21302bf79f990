const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const [rows, columns] = data;
let best = -Infinity;
for (let top = 0; top < rows; top++) {
  const sums = new Array(columns).fill(0);
  for (let bottom = top; bottom < rows; bottom++) {
    let endingHere = 0;
    for (let j = 0; j < columns; j++) {
      sums[j] += data[2 + bottom * columns + j];
      endingHere = Math.max(endingHere, 0) + sums[j];
      best = Math.max(best, endingHere);
    }
  }
}
console.log(String(best));
