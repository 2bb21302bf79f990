const text = require("fs").readFileSync(0, "utf8").trim().split(/\s+/);
const words = [];
const counts = [];
for (const word of text) {
  const i = words.indexOf(word);
  if (i < 0) {
    words.push(word);
    counts.push(1);
  } else {
    counts[i]++;
  }
}
const order = words.map((_, i) => i);
order.sort((i, j) => counts[j] - counts[i] || (words[i] < words[j] ? -1 : 1));
for (const i of order.slice(0, 10)) console.log(`${words[i]} ${counts[i]}`);
