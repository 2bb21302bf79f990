const n = parseInt(require("fs").readFileSync(0, "utf8"), 10);

function isPrime(number) {
  for (let divisor = 2; divisor * divisor <= number; divisor++) {
    if (number % divisor === 0) return false;
  }
  return true;
}

let count = 0;
let sum = 0;
for (let number = 2; number <= n; number++) {
  if (isPrime(number)) {
    count++;
    sum += number;
  }
}
console.log(`${count} ${sum}`);
