const n = parseInt(require("fs").readFileSync(0, "utf8"), 10);
const composite = new Uint8Array(n + 1);
let count = 0;
let sum = 0;
for (let number = 2; number <= n; number++) {
  if (composite[number]) continue;
  count++;
  sum += number;
  for (let multiple = number * number; multiple <= n; multiple += number) composite[multiple] = 1;
}
console.log(`${count} ${sum}`);
