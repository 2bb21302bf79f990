const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const [n, k] = data;
const values = data.slice(2);
const queue = []; // positions whose values fall from the left to the right
let front = 0;
const maxima = [];
for (let i = 0; i < n; i++) {
  while (queue.length > front && values[queue[queue.length - 1]] <= values[i]) queue.pop();
  queue.push(i);
  if (queue[front] === i - k) front++;
  if (i >= k - 1) maxima.push(values[queue[front]]);
}
console.log(maxima.join(" "));
