const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const [n, capacity] = data;
const known = new Map();

function best(i, room) {
  if (i 