const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const tails = [];
for (const value of data.slice(1)) {
  let low = 0;
  let high = tails.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (tails[middle] < value) low = middle + 1;
    else high = middle;
  }
  tails[low] = value;
}
console.log(String(tails.length));
