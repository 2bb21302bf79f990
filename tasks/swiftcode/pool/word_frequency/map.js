const text = require("fs").readFileSync(0, "utf8").trim().split(/\s+/);
const counts = new Map();
for (const word of text) counts.set(word, (counts.get(word) || 0) + 1);
const sorted = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
for (const [word, count] of sorted.slice(0, 10)) console.log(`${word} ${count}`);
