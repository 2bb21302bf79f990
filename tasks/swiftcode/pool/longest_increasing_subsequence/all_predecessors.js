const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const values = data.slice(1);
const length = new Array(values.length).fill(1);
let longest = 0;
for (let i = 0; i < values.length; i++) {
  for (let j = 0; j < i; j++) {
    if (values[j] < values[i] && length[j] + 1 > length[i]) length[i] = length[j] + 1;
  }
  longest = Math.max(longest, length[i]);
}
console.log(String(longest));
