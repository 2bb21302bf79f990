const data = require("fs").readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const [rows, columns] = data;
const corner = Array.from({ length: rows + 1 }, () => new Array(columns + 1).fill(0));
for (let i = 0; i < rows; i++) {
  for (let j = 0; j < columns; j++) {
    corner[i + 1][j + 1] = data[2 + i * columns + j] + corner[i][j + 1] + corner[i + 1][j] - corner[i][j];
  }
}
let best = -Infinity;
for (let top = 0; top < rows; top++) {
  for (let bottom = top + 1; bottom <= rows; bottom++) {
    for (let left = 0; left < columns; left++) {
      for (let right = left + 1; right <= columns; right++) {
        const sum = corner[bottom][right] - corner[top][right] - corner[bottom][left] + corner[top][left];
        best = Math.max(best, sum);
      }
    }
  }
}
console.log(String(best));
