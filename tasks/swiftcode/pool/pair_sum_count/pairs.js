const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const target = data[1];
const values = data.slice(2);
let count = 0;
for (let i = 0; i < values.length; i++) {
  for (let j = i + 1; j < values.length; j++) {
    if (values[i] + values[j] === target) count++;
  }
}
console.log(String(count));
