const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const target = data[1];
const seen = new Map();
let count = 0;
for (const value of data.slice(2)) {
  count += seen.get(target - value) || 0;
  seen.set(value, (seen.get(value) || 0) + 1);
}
console.log(String(count));
