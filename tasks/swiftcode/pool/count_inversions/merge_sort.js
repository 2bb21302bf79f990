const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
let count = 0;

function sort(values) {
  if (values.length < 2) return values;
  const middle = values.length >> 1;
  const left = sort(values.slice(0, middle));
  const right = sort(values.slice(middle));
  const merged = [];
  let i = 0;
  let j = 0;
  while (i < left.length && j < right.length) {
    if (left[i] <= right[j]) {
      merged.push(left[i++]);
    } else {
      count += left.length - i;
      merged.push(right[j++]);
    }
  }
  while (i < left.length) merged.push(left[i++]);
  while (j < right.length) merged.push(right[j++]);
  return merged;
}

sort(data.slice(1));
console.log(String(count));
